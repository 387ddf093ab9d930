"""Relabeling over symbols: a target's labels and a list of rules give its final labels, or the rule that drops it.

    target -> plan of its shape -> filter (remembered by the values that decide) -> program, else rules -> Labels

A program is what the rules do to targets of one shape (_programs.pyx); where there is none, each rule runs, and gives the same.
Nothing here knows what a rule means: a rule is what it reads, what it writes, and a pure function of the values read (rules.py).
"""
import cython

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memchr

from ._core cimport IdTable, Symbol, Symbols
from ._fields cimport ABSENT, EMPTY, kind_number
from ._index cimport index_add, index_free, index_next, index_probe, index_probe_t, index_remove
from ._label_list cimport LabelList
from ._labels cimport LabelShape, Labels, Layout, new_labels, shapes_of
from ._memo cimport Memo
from ._parts cimport Rendered
from ._programs cimport KEPT, MOST_TRACES, UNKNOWN, Ending, Program, Programs
from ._programs cimport KNOWN_ADDRESS, KNOWN_INSTANCE, KNOWN_INTERVAL, KNOWN_NAMES, KNOWN_SCHEME, KNOWN_TIMEOUT
from ._steps cimport COPY_LABELS, KEEP, KEEP_LABELS, RENAME_LABELS, Step
from ._batch cimport Batch, Row, Target

cdef enum:
    MOST_PLANS = 4096       # then all are forgotten, and the filters with them
    MOST_REACHED = 16       # names that a label may become; beyond that it is taken to decide


@cython.final
@cython.no_gc_clear     # freeing uses its references
cdef class Filter:
    """The labels of one filter."""

    def __cinit__(self, Symbols symbols not None, tuple names, uint32_t bound):
        cdef uint32_t i
        self.symbols = symbols
        self.names = <uint32_t*> malloc((len(names) + 1) * sizeof(uint32_t))
        if self.names == NULL:
            raise MemoryError
        self.count = len(names)
        for i in range(self.count):
            self.names[i] = names[i]
            symbols.hold(self.names[i])
        self.memo = Memo(symbols, self.count, 1, False, bound)

    def __dealloc__(self):
        cdef uint32_t i
        for i in range(self.count):
            self.symbols.drop(self.names[i])
        free(self.names)


@cython.final
@cython.no_gc_clear     # freeing uses its references
cdef class Relabeling(IdTable):
    """Rules compiled for one table of symbols, with the labels that a target has before the first of them.

    `rules` are those of rules.py or steps made of them, which several relabelings may share; `defaults` are label names and values
    that the discovered labels override, and `instance` makes the label of that name out of an address and a scheme.
    `refusal` tells of an address, an interval and a timeout why a target with them cannot be scraped, or an empty text.
    Without `filtered` or `compiled` all rules run for every target, or every one that is kept, which gives the same: tests compare.
    """

    def __cinit__(
        self, Symbols symbols not None, rules, defaults, instance, *,
        refusal=None, uint32_t bound=65536, bint filtered=True, bint compiled=True,
    ):
        cdef uint32_t i = 0
        self.bound = bound
        self.symbols = symbols
        self.shapes = shapes_of(symbols)
        self.steps = [rule if isinstance(rule, Step) else Step(symbols, rule, bound) for rule in rules]
        self.step_count = len(self.steps)
        for step in self.steps:
            if (<Step> step).symbols is not symbols:
                raise ValueError("a step of other symbols")
            self.prometheus = (<Step> step).prometheus
        self.filter_length = 0
        for place, step in enumerate(self.steps):
            if filtered and ((<Step> step).kind == KEEP or (<Step> step).guard_drops):
                self.filter_length = place + 1
        for step in self.steps:
            if (<Step> step).prometheus != self.prometheus:
                compiled = False
        self.list = LabelList(symbols, self.steps)
        if compiled:
            self.programs = Programs(self.shapes, self.list, self.steps, self.filter_length)
            self.programs.known = self.known
            self.programs.prometheus = self.prometheus
        self.filters = []
        self.variants = {}
        self.asked_of = NO_FILTER
        for name, value in defaults.items():
            if not isinstance(name, str) or not isinstance(value, str):
                raise TypeError(f"the label {name!r} of a target must be a string, not {value!r}")
        # zeroed, and counted one by one: what fails half way frees what there is
        self.default_names = <uint32_t*> calloc(len(defaults) + 1, sizeof(uint32_t))
        self.default_values = <uint32_t*> calloc(len(defaults) + 1, sizeof(uint32_t))
        self.dropped = <int64_t*> calloc(len(self.steps) + 3, sizeof(int64_t))
        self.plans = <Plan**> malloc((MOST_PLANS + 1) * sizeof(Plan*))
        if self.default_names == NULL or self.default_values == NULL or self.dropped == NULL or self.plans == NULL:
            raise MemoryError
        for name in sorted(defaults, key=str.encode):
            self.default_names[i] = self.fixed(name)
            self.default_values[i] = self.fixed(defaults[name])
            i += 1
            self.default_count = i
        self.known[KNOWN_ADDRESS] = self.fixed("__address__")
        self.known[KNOWN_INSTANCE] = self.fixed("instance")
        self.known[KNOWN_SCHEME] = self.fixed("__scheme__")
        self.known[KNOWN_INTERVAL] = self.fixed("__scrape_interval__")
        self.known[KNOWN_TIMEOUT] = self.fixed("__scrape_timeout__")
        self.make_instance = instance
        self.find_refusal = refusal
        self.refusals = Memo(symbols, 3, 1, True, bound)
        self.instances = Memo(symbols, 2, 1, True, bound)
        symbols.tables.add(self)

    cdef uint32_t fixed(self, str text) except 0:
        cdef uint32_t id = self.symbols.intern_str(text)
        self.symbols.hold(id)
        return id

    def __dealloc__(self):
        cdef uint32_t i
        self.forget_plans()
        for i in range(self.default_count):
            self.symbols.drop(self.default_names[i])
            self.symbols.drop(self.default_values[i])
        for i in range(KNOWN_NAMES):
            if self.known[i]:
                self.symbols.drop(self.known[i])
        free(self.default_names)
        free(self.default_values)
        free(self.dropped)
        index_free(&self.plan_index)
        free(self.plans)

    @property
    def rules(self) -> tuple:
        """The rules, in order."""
        return tuple([(<Step> step).rule for step in self.steps])

    @property
    def drops(self) -> tuple[tuple[int, ...], int, int, int]:
        """Targets dropped so far: by each rule, because no label was left, because there was no address, and because of a refusal."""
        cdef int count = len(self.steps)
        by_rule = tuple([self.dropped[i] for i in range(count)])
        return by_rule, self.dropped[count], self.dropped[count + 1], self.dropped[count + 2]

    @property
    def remembered(self) -> int:
        """Outcomes remembered now, of rules and filters together."""
        return sum([len((<Filter> one).memo) for one in self.filters]) + sum([step.remembered for step in self.steps])

    def survivors(self, Batch batch not None, str role, int profile, below=None, *, size_t row=0, int64_t effort=-1) -> tuple:
        """(key, ((position, Labels), ...)) of each part that has targets which are kept, with their final labels; and where to go on.

        Keys and positions as `Batch.targets` has them. Begins at `row` and ends with the part that takes up the `effort`; the next
        row, or None if that was all. The effort is one for each rule of a target, and some more where its function has to be asked.
        """
        cdef Rendered kept = Rendered()
        cdef uint64_t end = <uint64_t> -1 if below is None else <uint64_t> below
        cdef int64_t next = self.collect(batch, kind_number(role), profile, end, row, effort, kept)
        return kept.listed(), None if next < 0 else next

    cdef int64_t collect(
        self, Batch batch, int kind, int profile, uint64_t end, size_t row, int64_t effort, Rendered kept
    ) except? -2:
        """The same, added to `kept`; gives the next row, or -1."""
        cdef size_t i
        cdef int64_t enough = NO_END if effort < 0 else self.list.effort + effort
        cdef uint32_t j
        cdef Row* part_row
        cdef Target* target
        cdef Plan* plan = NULL
        cdef Labels labels
        cdef bint is_begun
        if batch.shapes is not self.shapes:
            raise ValueError("a batch of other symbols")
        for i in range(row, batch.row_count):
            part_row = &batch.rows[i]
            if part_row.kind != kind or part_row.profile != profile or part_row.key >= end:
                continue
            if self.list.effort >= enough:
                return <int64_t> i
            is_begun = False
            for j in range(part_row.first, part_row.first + part_row.count):
                target = &batch.found[j]
                if plan == NULL or plan.shape != target.shape:
                    plan = self.plan(target.shape)
                labels = self.kept(plan, batch.values + target.values)
                if labels is None:
                    continue
                if not is_begun:
                    is_begun = True
                    kept.begin(part_row.key)
                kept.add(target.ident, labels)
        return -1

    cdef Labels kept(self, Plan* plan, const uint32_t* values):
        """The final labels of one target, or None if it is dropped; counted as that."""
        cdef Ending* ending
        cdef Labels made
        cdef uint32_t verdict = <uint32_t> self.verdict(plan, values)
        self.seen += 1
        if verdict == 0:
            self.evaluated += 1
            ending = self.ending_of(plan, values)
            if ending != NULL and ending.verdict != UNKNOWN:
                self.followed += 1
                self.list.effort += self.step_count
                verdict = ending.verdict
                if verdict == KEPT:
                    made = self.complete(plan.program, ending)
                    if made is not None:
                        return made
                    verdict = self.step_count + 3
            else:
                self.start(plan, values, None)
                verdict = <uint32_t> (1 + self.run())
                if verdict == 0:
                    verdict = <uint32_t> self.finish()
                    if verdict == 0:
                        return self.labels()
                    verdict += self.step_count
        self.dropped[verdict - 1] += 1
        return None

    cdef bint survives(self, LabelShape* shape, const uint32_t* values) except -1:
        """Whether a target is kept; unlike `collect` it counts nothing as dropped."""
        cdef Plan* plan = self.plan(shape)
        cdef Ending* ending
        if self.verdict(plan, values):
            return False
        ending = self.ending_of(plan, values)
        if ending == NULL or ending.verdict == UNKNOWN:
            self.start(plan, values, None)
            return self.run() < 0 and self.finish() == 0
        return ending.verdict == KEPT and not self.refuses(plan.program, ending)

    def steps_of(self, Labels labels not None) -> tuple[list, object]:
        """What each rule does to one target: (rule, labels before, labels after) up to the rule that drops it, then the final Labels,
        or why there are none: the rule's number, or "no label is left", "no address", or a refusal.

        Labels are lists of (name, value), in the order in which rules see them.
        """
        if labels.shapes is not self.shapes:
            raise ValueError("labels of other symbols")
        cdef Plan* plan = self.plan(labels.shape)
        cdef int i
        cdef int dropped = -1
        cdef int ending
        self.start(plan, labels.ids, None)
        seen = []
        for i in range(len(self.steps)):
            before = self.list.listed()
            dropped = self.list.apply(<Step> self.steps[i])
            if self.list.count == 0 and not (<Step> self.steps[i]).prometheus:
                dropped = 1
            seen.append(((<Step> self.steps[i]).rule, before, [] if dropped else self.list.listed()))
            if dropped:
                return seen, i
        ending = self.finish()
        if ending:
            return seen, ("no label is left", "no address", self.symbols.string(self.refused))[ending - 1]
        return seen, self.labels()

    # ---- plans and filters ----

    cdef Plan* plan(self, LabelShape* shape) except NULL:
        cdef uint32_t hash = shape.hash
        cdef index_probe_t probe = index_probe(&self.plan_index, hash)
        cdef uint32_t id
        while True:
            id = index_next(&probe)
            if id == 0:
                return self.new_plan(shape, hash)
            if self.plans[id].shape == shape:
                self.plans[id].used = 1
                return self.plans[id]

    cdef Plan* new_plan(self, LabelShape* shape, uint32_t hash) except NULL:
        """Merges the shape's names with the defaults; the discovered label wins."""
        cdef uint32_t i = 0
        cdef uint32_t j = 0
        cdef int order
        cdef Filter filter
        if self.plan_count >= MOST_PLANS:
            self.forget_plans()
        cdef uint32_t most = shape.count + self.default_count
        filter = self.filter_of(shape) if self.filter_length else None
        cdef Plan* made = <Plan*> calloc(1, sizeof(Plan))
        if made == NULL:
            raise MemoryError
        made.names = <uint32_t*> malloc((most + 1) * sizeof(uint32_t))
        made.places = <int32_t*> malloc((most + 1) * sizeof(int32_t))
        made.filtered = <int32_t*> malloc(MOST_FILTERED * sizeof(int32_t))
        if made.names == NULL or made.places == NULL or made.filtered == NULL:
            raise MemoryError
        while i < shape.count or j < self.default_count:
            order = -1 if j == self.default_count else 1 if i == shape.count else self.shapes.compare(shape.names[i], self.default_names[j])
            if order <= 0:
                made.names[made.count] = shape.names[i]
                made.places[made.count] = <int32_t> i
                i += 1
                j += order == 0
            else:
                made.names[made.count] = self.default_names[j]
                made.places[made.count] = -1 - <int32_t> j
                j += 1
            made.count += 1
        made.shape = shape
        made.hash = hash
        made.used = 1
        shape.refs += 1
        shape.weak += 1
        made.variant = NO_FILTER
        if filter is not None:
            made.variant = filter.variant
            for i in range(filter.count):
                made.filtered[i] = -1
                for j in range(made.count):
                    if made.names[j] == filter.names[i]:
                        made.filtered[i] = <int32_t> j
        self.plan_count += 1
        self.plans[self.plan_count] = made
        if not index_add(&self.plan_index, hash, self.plan_count):
            raise MemoryError
        return made

    cdef Filter filter_of(self, LabelShape* shape):
        """The labels that decide about targets of this shape: those from which something reaches what a rule of the filter reads.

        None if they are too many to remember by.
        """
        cdef uint32_t i
        cdef set needed = set()
        for i in range(shape.count):
            if self.decides(shape.names[i]):
                needed.add(shape.names[i])
        for i in range(self.default_count):
            if self.decides(self.default_names[i]):
                needed.add(self.default_names[i])
        if len(needed) > MOST_FILTERED:
            return None
        names = tuple(sorted(needed))
        if names not in self.variants:
            self.variants[names] = len(self.filters)
            made = Filter(self.symbols, names, self.bound)
            made.variant = <uint32_t> len(self.filters)
            self.filters.append(made)
        return self.filters[self.variants[names]]

    cdef bint decides(self, uint32_t name) except -1:
        """Whether a label of this name, or what rules copy or rename it to, is read by a rule of the filter."""
        cdef Step step
        cdef uint32_t i, result
        cdef int place
        cdef list reached = [name]      # a rule that takes labels away or overwrites them is taken to leave them
        for place in range(self.filter_length):
            step = <Step> self.steps[place]
            if step.reads(reached) or (step.guard is not None and step.guard.reads(reached)):
                return True
            if step.kind == COPY_LABELS or step.kind == RENAME_LABELS:
                # a rule may copy what it has copied, so the list grows; renaming happens once
                for one in reached if step.kind == COPY_LABELS else reached[:]:
                    i = one
                    step.outcome(&i, &result)
                    if result != ABSENT and result not in reached:
                        if len(reached) == MOST_REACHED:
                            return True
                        reached.append(result)
        return False

    cdef void forget_plans(self) noexcept:
        while self.plan_count:
            self.forget_plan(self.plan_count)
        self.plan_cursor = 0
        self.asked_of = NO_FILTER
        self.filters = []
        self.variants = {}

    cdef void forget_plan(self, uint32_t id) noexcept:
        """Drops one plan; the last one gets its id. Its filter stays: other shapes lead to it, or will."""
        cdef Plan* plan = self.plans[id]
        cdef Plan* last = self.plans[self.plan_count]
        index_remove(&self.plan_index, plan.hash, id)
        if plan != last:
            # if memory is short it is not found any more, and made again
            index_remove(&self.plan_index, last.hash, self.plan_count)
            index_add(&self.plan_index, last.hash, id)
            self.plans[id] = last
        self.plan_count -= 1
        plan.shape.weak -= 1
        self.shapes.drop_shape(plan.shape)
        if plan.program != NULL:
            self.programs.free_program(plan.program)
        free(plan.names)
        free(plan.places)
        free(plan.filtered)
        free(plan)

    cdef bint forget_doomed(self, Py_ssize_t* budget) noexcept:
        """Plans keep their shape, and so its names: those of shapes that nobody has and nobody has asked for are given up."""
        cdef Plan* plan
        self.asked_of = NO_FILTER       # whatever comes next may have the id of a value that is gone
        while self.plan_cursor < self.plan_count:
            if budget[0] <= 0:
                return True
            budget[0] -= 1
            plan = self.plans[self.plan_cursor + 1]
            if not plan.used and plan.shape.refs == plan.shape.weak:
                self.forget_plan(self.plan_cursor + 1)
            else:
                plan.used = 0
                self.plan_cursor += 1
        self.plan_cursor = 0
        if len(self.filters) > 64 + 2 * <Py_ssize_t> self.plan_count:
            # most filters are those of plans that have gone; what is needed is made again
            self.forget_plans()
        return False

    cdef int verdict(self, Plan* plan, const uint32_t* values) except -1:
        """0: nothing in the filter drops the target; else 1 + the rule that does. Also 0 where there is no filter to ask."""
        cdef uint32_t i, value, verdict
        cdef uint32_t* key = self.asked
        cdef uint32_t* found
        cdef Filter filter
        if plan.variant == NO_FILTER:
            self.is_decided = False
            return 0
        filter = <Filter> self.filters[plan.variant]
        cdef bint same = plan.variant == self.asked_of
        for i in range(filter.count):
            value = ABSENT if plan.filtered[i] < 0 else self.value_at(plan, values, <uint32_t> plan.filtered[i])
            same = same and key[i] == value
            key[i] = value
        if same:
            filter.memo.count_hit()
            return self.answered
        self.asked_of = plan.variant
        # also where the filter leaves the answer to the full run: what rules read from there on is the same for all targets of the shape
        self.is_decided = True
        found = filter.memo.find(key)
        if found != NULL:
            self.answered = <int> found[0]
        elif filter.memo.given_up:
            self.answered = 0       # the rules run anyway
            self.is_decided = False
        else:
            self.start(plan, values, filter)
            self.evaluated += 1
            verdict = <uint32_t> (1 + self.run_filter())
            filter.memo.remember(key, &verdict)
            self.answered = <int> verdict
        return self.answered

    cdef bint is_filtered(self, Filter filter, Plan* plan, uint32_t position) noexcept:
        cdef uint32_t i
        for i in range(filter.count):
            if plan.filtered[i] == <int32_t> position:
                return True
        return False

    cdef uint32_t value_at(self, Plan* plan, const uint32_t* values, uint32_t position) noexcept:
        cdef int32_t place = plan.places[position]
        return values[place] if place >= 0 else self.default_values[-1 - place]

    # ---- programs ----

    cdef Ending* ending_of(self, Plan* plan, const uint32_t* values) except? NULL:
        """Where the program of its shape leads a target that the filter keeps; NULL: the rules have to run."""
        cdef Ending* ending
        if self.programs is None:
            return NULL
        if plan.program == NULL:
            if not plan.is_kept:    # a shape of one target is not worth a program
                plan.is_kept = True
                return NULL
            plan.program = self.programs.program(plan.shape.count)
        self.programs.load(plan.program, values)
        ending = self.programs.follow(plan.program, self.is_decided)
        if ending == NULL and plan.program.traces < MOST_TRACES:
            plan.program.traces += 1
            ending = self.programs.trace(plan.program, plan.count, plan.names, plan.places, self.default_values)
        return ending

    cdef Labels complete(self, Program* program, Ending* ending):
        """The labels of a target that was followed to this ending; None if it is refused."""
        cdef uint32_t* slots = program.slots
        if self.refuses(program, ending):
            return None
        if ending.instance:
            slots[ending.instance] = self.instance(slots[ending.address], slots[ending.scheme])
        return self.programs.labels(program, ending)

    cdef bint refuses(self, Program* program, Ending* ending) except -1:
        """Whether a target that was followed to this ending cannot be scraped."""
        cdef uint32_t* slots = program.slots
        return self.find_refusal is not None and self.refuse(slots[ending.address], slots[ending.interval], slots[ending.timeout])

    # ---- running rules ----

    cdef int start(self, Plan* plan, const uint32_t* values, Filter filter) except -1:
        """All labels of a target, or those of the filter; in Prometheus an empty one is none."""
        cdef uint32_t i, value
        self.list.clear()
        for i in range(plan.count):
            if filter is None or self.is_filtered(filter, plan, i):
                value = self.value_at(plan, values, i)
                if value != EMPTY or not self.prometheus:
                    self.list.push(plan.names[i], value)
        self.list.given = self.list.count
        return 0

    cdef int run(self) except -2:
        """Runs the rules; -1, or the number of the one that drops the target or, but in Prometheus, takes its last label."""
        cdef int i
        cdef Step step
        for i in range(self.step_count):
            step = <Step> self.steps[i]
            if self.list.apply(step) or (self.list.count == 0 and not step.prometheus):
                return i
        return -1

    cdef int run_filter(self) except -2:
        """Runs the rules of the filter over its labels; -1, or the number of the one that drops the target.

        Where a rule may have taken the last label, which need not be here, the answer is left to the full run.
        """
        cdef int i
        cdef Step step
        for i in range(self.filter_length):
            step = <Step> self.steps[i]
            if self.list.apply(step):
                return i
            if self.list.count == 0 and step.kind == KEEP_LABELS and not step.prometheus:
                return -1
        return -1

    cdef int finish(self) except -1:
        """Takes away empty labels, __meta_ and __tmp; sets `instance`. 1: no label is left; 2: no address; 3: a refusal."""
        cdef int ending = self.list.strip(self.known[KNOWN_ADDRESS])
        cdef uint32_t address
        if ending:
            return ending
        address = self.list.value_of(self.known[KNOWN_ADDRESS])
        if self.find_refusal is not None:
            if self.refuse(address, self.list.value_of(self.known[KNOWN_INTERVAL]), self.list.value_of(self.known[KNOWN_TIMEOUT])):
                return 3
        if self.list.position(self.known[KNOWN_INSTANCE]) < 0:
            self.list.push(self.known[KNOWN_INSTANCE], self.instance(address, self.list.value_of(self.known[KNOWN_SCHEME])))
        return 0

    cdef uint32_t instance(self, uint32_t address, uint32_t scheme) except 0:
        """The value of `instance`: in both dialects an address with a port, and with neither scheme nor path, as it is."""
        cdef Symbol* symbol = self.symbols.at(address)
        cdef uint32_t[2] key
        cdef uint32_t result
        cdef uint32_t* found
        if memchr(symbol.text, b":", symbol.length) != NULL and memchr(symbol.text, b"/", symbol.length) == NULL:
            return address
        key[0], key[1] = address, scheme
        found = self.instances.find(key)
        if found != NULL:
            return found[0]
        result = self.symbols.intern_str(self.make_instance(self.symbols.string(key[0]), self.symbols.string(key[1])))
        self.instances.remember(key, &result)
        return result

    cdef int refuse(self, uint32_t address, uint32_t interval, uint32_t timeout) except -1:
        """Whether a target with this address, and its interval and timeout, is refused; `refused` has the reason."""
        cdef uint32_t[3] key
        cdef uint32_t* found
        key[0], key[1], key[2] = address, interval, timeout
        found = self.refusals.find(key)
        if found == NULL:
            self.refused = self.symbols.intern_str(self.find_refusal(*[self.symbols.string(key[i]) for i in range(3)]))
            self.refusals.remember(key, &self.refused)
        else:
            self.refused = found[0]
        return self.refused != EMPTY

    cdef Labels labels(self):
        """The labels as they are now."""
        cdef Layout* layout = self.shapes.layout(self.list.names, self.list.count)
        cdef Labels made
        cdef uint32_t* values = <uint32_t*> malloc((layout.shape.count + 1) * sizeof(uint32_t))
        cdef uint32_t i
        if values == NULL:
            raise MemoryError
        for i in range(layout.shape.count):
            values[i] = self.list.values[(layout.words + layout.count)[i]]
        made = new_labels(self.shapes, layout.shape, values)
        free(values)
        return made
