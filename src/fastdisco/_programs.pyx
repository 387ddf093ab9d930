"""What the rules do to targets of one shape, as far as it does not depend on values: which final label comes from which of them.

    values of a target -> slots -> questions, whose answers lead on -> ending: a verdict, or a shape and the slot of each value

A program is a tree, made of the ways that targets have taken: a node asks a rule about values, or which values are empty; at the end
of a way all is known that the rules do. It grows by tracing, up to a bound; who strays from it has the rules run.
It owns its constants and final shapes, and nothing else: what else is in its slots is of the target followed last.
"""
import cython

from libc.stdint cimport int32_t, uint8_t, uint32_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcmp, memcpy

from ._fields cimport ABSENT, EMPTY
from ._label_list cimport LabelList
from ._labels cimport Labels, Layout, Shapes, picked_labels
from ._steps cimport COPY_LABELS, COPY_VALUE, KEEP, SET_NAMED, Step


cdef int answer_of(Step step, const uint32_t* outcome) noexcept:
    """What of an outcome decides about the labels that there are after a rule."""
    if outcome[0] == ABSENT:        # also a condition's "no"
        return NO
    return NOTHING if outcome[0] == EMPTY and step.prometheus and step.kind != KEEP else YES


@cython.final
@cython.no_gc_clear     # freeing uses its references
cdef class Programs:
    """Makes, follows and frees the programs of one relabeling."""

    def __cinit__(self, Shapes shapes not None, LabelList labels not None, list steps not None, int decided):
        cdef Step step
        cdef uint32_t most = 1
        self.shapes = shapes
        self.symbols = shapes.symbols
        self.list = labels
        self.steps = steps
        self.decided = decided
        for one in steps:
            step = <Step> one
            most = max(most, step.source_count, 0 if step.guard is None else step.guard.source_count)
        self.key = <uint32_t*> malloc(most * sizeof(uint32_t))
        if self.key == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.key)
        free(self.empty)

    cdef Program* program(self, uint32_t values) except NULL:
        """An empty one for targets of so many values."""
        cdef Program* made = <Program*> calloc(1, sizeof(Program))
        if made == NULL:
            raise MemoryError
        made.values = values
        try:
            self.new_slots(made, FIRST_VALUE + values)
        except MemoryError:
            self.free_program(made)
            raise
        made.slots[EMPTY] = EMPTY
        made.fixed[EMPTY] = True    # of the symbols that are always there: the hold is for `free_program` alone
        self.symbols.hold(EMPTY)
        return made

    cdef void free_program(self, Program* program) noexcept:
        cdef uint32_t i
        if program == NULL:
            return
        self.free_node(program.root)
        for i in range(program.count):
            if program.fixed[i]:
                self.symbols.drop(program.slots[i])
        free(program.slots)
        free(program.fixed)
        free(program)

    cdef void free_node(self, Node* node) noexcept:
        cdef Case* case
        cdef int i
        if node == NULL:
            return
        for i in range(ANSWERS):
            self.free_node(node.nodes[i])
        while node.cases != NULL:
            case = node.cases
            node.cases = case.next
            self.free_node(<Node*> case.node)
            free(case)
        if node.ending.shape != NULL:
            node.ending.shape.weak -= 1
            self.shapes.drop_shape(node.ending.shape)
        free(node.ending.slots)
        free(node)

    cdef uint32_t new_slots(self, Program* program, uint32_t count) except? 0:
        """So many more, zeroed; gives the first."""
        cdef uint32_t first = program.count
        cdef uint32_t* slots
        cdef uint8_t* fixed
        cdef uint32_t i
        if first + count > program.capacity:
            slots = <uint32_t*> realloc(program.slots, (first + count + 8) * sizeof(uint32_t))
            if slots == NULL:
                raise MemoryError
            program.slots = slots
            fixed = <uint8_t*> realloc(program.fixed, first + count + 8)
            if fixed == NULL:
                raise MemoryError
            program.fixed = fixed
            program.capacity = first + count + 8
        for i in range(first, first + count):
            program.slots[i] = 0
            program.fixed[i] = False
        program.count += count
        return first

    cdef uint32_t constant(self, Program* program, uint32_t id) except 0:
        """The slot of a value that all targets have."""
        cdef uint32_t i
        for i in range(program.count):
            if program.fixed[i] and program.slots[i] == id:
                return i
        i = self.new_slots(program, 1)
        program.slots[i] = id
        program.fixed[i] = True
        self.symbols.hold(id)
        return i

    cdef Node* node(self, int kind, uint32_t count, const uint32_t* reads) except NULL:
        cdef Node* made = <Node*> calloc(1, sizeof(Node) + count * sizeof(uint32_t))
        if made == NULL:
            raise MemoryError
        made.kind = <uint8_t> kind
        made.count = count
        if count:
            memcpy(made.reads, reads, count * sizeof(uint32_t))
        return made

    cdef void load(self, Program* program, const uint32_t* values) noexcept:
        """The target that is to be followed."""
        memcpy(program.slots + FIRST_VALUE, values, program.values * sizeof(uint32_t))

    cdef uint32_t find_empties(self, Program* program, Node* node) except? 0xFFFFFFFF:
        """How many of the slots that a node asks about are empty; their places are in `empty`."""
        cdef uint32_t i
        cdef uint32_t found = 0
        cdef uint32_t* grown
        if node.count > self.empty_capacity:
            grown = <uint32_t*> realloc(self.empty, node.count * sizeof(uint32_t))
            if grown == NULL:
                raise MemoryError
            self.empty = grown
            self.empty_capacity = node.count
        for i in range(node.count):
            self.empty[found] = i
            found += program.slots[node.reads[i]] == EMPTY
        return found

    cdef Node** case_of(self, Node* node, uint32_t count, bint adds) except? NULL:
        """Where the answer in `empty` leads, or NULL; the place for it if it is to be added."""
        cdef Case* case = node.cases
        while case != NULL:
            if case.count == count and memcmp(case.places, self.empty, count * sizeof(uint32_t)) == 0:
                return <Node**> &case.node
            case = case.next
        if not adds:
            return NULL
        case = <Case*> malloc(sizeof(Case) + count * sizeof(uint32_t))
        if case == NULL:
            raise MemoryError
        case.node = NULL
        case.count = count
        memcpy(case.places, self.empty, count * sizeof(uint32_t))
        case.next = node.cases
        node.cases = case
        return <Node**> &case.node

    cdef Ending* follow(self, Program* program, bint is_decided) except? NULL:
        """The ending of the target that was loaded; NULL: no target has gone that way yet.

        With `is_decided` the rules of the filter are known to keep it.
        """
        cdef Node* node = program.root
        cdef Node** to
        cdef Step step
        cdef uint32_t i
        while node != NULL:
            if node.kind == ENDS:
                return &node.ending
            if node.kind == EMPTIES:
                to = self.case_of(node, self.find_empties(program, node), False)
                node = NULL if to == NULL else to[0]
                continue
            step = <Step> self.steps[node.step]
            if is_decided and node.step < self.decided and (step.guard_drops if node.guard else step.kind == KEEP):
                node = node.nodes[YES]
                continue
            if node.guard:
                step = step.guard
            for i in range(node.count):
                self.key[i] = program.slots[node.reads[i]]
            self.list.effort += step.outcome(self.key, program.slots + node.result)
            node = node.nodes[answer_of(step, program.slots + node.result)]
        return NULL

    # ---- making: the rules run over slots ----

    cdef Ending* trace(
        self, Program* program, uint32_t count, const uint32_t* names, const int32_t* places, const uint32_t* defaults
    ) except? NULL:
        """Runs the rules over slots, for the target that was loaded, and adds its way to the program.

        Names and places are those of the labels before the first rule; a place is one of the target's values, or -1 - one of the defaults.
        Names are as they will be; of values only those answers count that decide which labels there are.
        """
        cdef Node** at = &program.root
        cdef Step step
        cdef int i, answer
        self.start_slots(program, &at, count, names, places, defaults)
        for i in range(<int> len(self.steps)):
            step = <Step> self.steps[i]
            if (step.guard is not None and self.list.repeats) or step.kind == SET_NAMED or (step.target_count > 1 and step.prometheus):
                return self.end(&at, UNKNOWN)
            answer = YES if step.guard is None else self.question(program, &at, i, step.guard)
            if answer == NO and step.guard_drops:
                return self.end(&at, <uint32_t> i + 1)
            if answer == YES and not self.apply_to_slots(program, &at, i, step):
                return self.end(&at, <uint32_t> i + 1)
            if self.list.count == 0 and not step.prometheus:
                return self.end(&at, <uint32_t> i + 1)
        return self.finish_slots(program, &at)

    cdef int start_slots(
        self, Program* program, Node*** at, uint32_t count, const uint32_t* names, const int32_t* places, const uint32_t* defaults
    ) except -1:
        """The labels before the first rule."""
        cdef uint32_t i, slot
        self.list.clear()
        for i in range(count):
            slot = self.constant(program, defaults[-1 - places[i]]) if places[i] < 0 else <uint32_t> (FIRST_VALUE + places[i])
            self.list.push(names[i], slot)
        if self.prometheus:
            self.drop_empties(program, at)
            self.list.count = self.without_empties()
        self.list.given = self.list.count
        return 0

    cdef uint32_t without_empties(self) noexcept:
        cdef uint32_t i
        cdef uint32_t left = 0
        for i in range(self.list.count):
            if self.list.values[i] != EMPTY:
                self.list.names[left], self.list.values[left] = self.list.names[i], self.list.values[i]
                left += 1
        return left

    cdef int drop_empties(self, Program* program, Node*** at) except -1:
        """Asks which of the labels that will be shown, or of all in Prometheus, are empty; their slot is that of nothing then."""
        cdef uint32_t* asked = <uint32_t*> malloc((2 * self.list.count + 1) * sizeof(uint32_t))
        cdef uint32_t* places = asked + self.list.count
        cdef uint32_t i, empty
        cdef uint32_t count = 0
        if asked == NULL:
            raise MemoryError
        for i in range(self.list.count):
            if not program.fixed[self.list.values[i]] and (self.prometheus or self.list.is_shown(self.list.names[i])):
                asked[count] = self.list.values[i]
                places[count] = i
                count += 1
        try:
            if at[0][0] == NULL:
                at[0][0] = self.node(EMPTIES, count, asked)
            empty = self.find_empties(program, at[0][0])
            at[0] = self.case_of(at[0][0], empty, True)
            for i in range(empty):
                self.list.values[places[self.empty[i]]] = EMPTY
        finally:
            free(asked)
        return 0

    cdef int question(self, Program* program, Node*** at, int number, Step asked) except -1:
        """Asks a rule or an `if` about the values in the slots that it reads; `key` has where its outcome is.

        What reads constants alone is answered once and for all.
        """
        cdef Node* node
        cdef uint32_t i
        cdef bint is_fixed = True
        cdef uint32_t* slots = self.list.key
        self.list.read(asked, slots)
        for i in range(asked.source_count):
            is_fixed = is_fixed and program.fixed[slots[i]]
            self.key[i] = program.slots[slots[i]]
        self.list.effort += asked.outcome(self.key, self.list.result)
        if is_fixed:
            for i in range(asked.target_count):
                self.list.key[i] = ABSENT if self.list.result[i] == ABSENT else self.constant(program, self.list.result[i])
            return answer_of(asked, self.list.result)
        node = at[0][0]
        if node == NULL:
            node = at[0][0] = self.node(ASKS, asked.source_count, slots)
            node.step = number
            node.guard = asked is not <Step> self.steps[number]
            node.result = self.new_slots(program, asked.memo.results)
        memcpy(program.slots + node.result, self.list.result, asked.memo.results * sizeof(uint32_t))
        for i in range(asked.target_count):
            self.list.key[i] = node.result + i
        at[0] = &node.nodes[answer_of(asked, self.list.result)]
        return answer_of(asked, self.list.result)

    cdef bint apply_to_slots(self, Program* program, Node*** at, int number, Step step) except -1:
        """`apply`, of slots; False if the rule drops the target."""
        cdef uint32_t i
        cdef int answer
        if step.kind >= COPY_LABELS:
            self.list.apply_to_names(step)
            return True
        if step.kind == COPY_VALUE:
            self.list.read(step, self.list.key)
            self.list.assign(step.targets[0], self.list.key[0], step.prometheus)
            return True
        answer = self.question(program, at, number, step)
        if step.kind == KEEP:
            return answer != NO
        if answer != NO:
            for i in range(step.target_count):
                self.list.assign(step.targets[i], EMPTY if answer == NOTHING else self.list.key[i], step.prometheus)
        return True

    cdef Ending* finish_slots(self, Program* program, Node*** at) except NULL:
        """`finish`, of slots: where there is a value to be made or to be asked about, the ending says in which slots."""
        cdef Ending* ending
        cdef Layout* layout
        cdef uint32_t i
        cdef int verdict
        if not self.prometheus:     # where no label is empty now
            self.drop_empties(program, at)
        verdict = self.list.strip(self.known[KNOWN_ADDRESS])
        ending = self.end(at, <uint32_t> (<int> len(self.steps) + verdict) if verdict else UNKNOWN)   # until all is there
        if verdict or ending.shape != NULL:
            return ending
        ending.address = self.list.value_of(self.known[KNOWN_ADDRESS])
        ending.scheme = self.list.value_of(self.known[KNOWN_SCHEME])
        ending.interval = self.list.value_of(self.known[KNOWN_INTERVAL])
        ending.timeout = self.list.value_of(self.known[KNOWN_TIMEOUT])
        if self.list.position(self.known[KNOWN_INSTANCE]) < 0:
            ending.instance = self.new_slots(program, 1)
            self.list.push(self.known[KNOWN_INSTANCE], ending.instance)
        layout = self.shapes.layout(self.list.names, self.list.count)
        ending.slots = <uint32_t*> malloc((layout.shape.count + 1) * sizeof(uint32_t))
        if ending.slots == NULL:
            raise MemoryError
        for i in range(layout.shape.count):
            ending.slots[i] = self.list.values[(layout.words + layout.count)[i]]
        ending.shape = layout.shape
        ending.shape.refs += 1
        ending.shape.weak += 1
        ending.verdict = KEPT
        return ending

    cdef Ending* end(self, Node*** at, uint32_t verdict) except NULL:
        """The ending of a way; nothing if it was there."""
        if at[0][0] == NULL:
            at[0][0] = self.node(ENDS, 0, NULL)
            at[0][0].ending.verdict = verdict
        return &at[0][0].ending

    cdef Labels labels(self, Program* program, Ending* ending):
        """The final labels of the target that was followed to this ending."""
        return picked_labels(self.shapes, ending.shape, program.slots, ending.slots)
