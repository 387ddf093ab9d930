"""The targets of one configuration of one job: rendered labels become scrape works, and differences become changes.

    batch -> parts that have targets after the rules -> object by object: what was, what is -> works made, and told to the job

What takes long is done in steps, and the loop may go on between two of them.
"""
import cython
from libc.stdint cimport int64_t, uint32_t, uint64_t

from ._batch cimport PART_BITS as BITS_OF_PART
from ._batch cimport Batch, Touched
from ._fields cimport kind_number
from ._parts cimport SLOT, Entry, Part, Parts, Rendered, new_part
from ._relabel cimport Relabeling
from ._works cimport Holder, Works, are_equal

PART_BITS = BITS_OF_PART

cdef enum:
    TARGETS_AT_ONCE = 32        # constructor calls of a step
    PARTS_AT_ONCE = 500         # of one object, compared in a step
    EFFORT_AT_ONCE = 20_000     # of rules, likewise: a few milliseconds; see `Relabeling.survivors`


@cython.final
cdef class Subscriber(Holder):
    """What one configuration of a job has made of a group's objects; `working` once its first pass over them is complete.

    Its job is told `caught_up()`, `failed(error)`, `added(work)`, `updated(old, new)` and `removed(work)`.
    """

    cdef readonly object job
    cdef readonly str role
    cdef readonly int profile
    cdef readonly tuple needs
    cdef public Relabeling relabeling   # None: targets have their discovered labels, all of them
    cdef public bint working
    cdef public bint stale              # some of its targets have yet to be evaluated by the rules that it has now
    cdef public bint stopped
    cdef public bint quiet              # the job wants to know of no single change yet
    cdef readonly long long revision    # rises when a target's labels may have changed, also ones that no rule has looked at
    cdef int kind                       # number of the role
    cdef Works makes
    cdef Parts parts
    cdef dict held                      # slot -> what has been rendered of an object that is not rendered to its end
    cdef uint64_t[2] unfinished         # the slot with which the last batch of changes ended, and that of a pass; 0: none
    cdef bint is_large                  # the object at which `apply_some` has stopped needs steps of its own

    def __init__(self, job, str role not None, int profile, tuple needs not None, Works makes not None, Relabeling relabeling=None):
        self.job = job
        self.role = role
        self.kind = kind_number(role)
        self.profile = profile
        self.needs = needs
        self.relabeling = relabeling
        self.makes = makes
        self.parts = Parts()
        self.held = {}
        makes.join(self)

    # ---- batches ----

    def take(self, Batch batch not None, below, *, bint walking=False):
        """Brings what a batch has rendered up to date, of parts before the key `below`; gives the steps that are left to do.

        Of an object that goes on in the next batch of its kind, changes or a pass, everything waits for its last part.
        """
        cdef uint64_t end = <uint64_t> -1 if below is None else <uint64_t> below
        cdef bint waits = len(self.held) or batch.unfinished
        cdef Rendered rendered = Rendered()
        cdef bint is_touched = False
        cdef Touched* touched
        cdef int64_t row
        cdef size_t i
        for i in range(batch.touched_count):
            touched = &batch.touched[i]
            if touched.kind == self.kind and touched.key < end:
                is_touched = True
                # as if it had no targets: what it has comes later, and counts
                if waits or self.parts.find(touched.key) != NULL:
                    rendered.begin(touched.key)
        if not is_touched and not len(self.held):
            return ()
        if self.relabeling is None:
            rendered.extend(batch.targets(self.role, self.profile, below))
            row = -1
        else:
            row = self.relabeling.collect(batch, self.kind, self.profile, end, 0, EFFORT_AT_ONCE, rendered)
        if row >= 0 or waits:
            return self._take_on(batch, end, walking, waits, rendered, row)
        return self.apply(rendered)

    def _take_on(self, Batch batch, uint64_t end, bint walking, bint waits, Rendered rendered, int64_t row):
        """The rest of `take`, in steps."""
        cdef Relabeling relabeling = self.relabeling
        while row >= 0:
            yield
            row = relabeling.collect(batch, self.kind, self.profile, end, row, EFFORT_AT_ONCE, rendered)
        if waits:
            rendered = self.hold(rendered, batch.unfinished, walking)
        yield from self.apply(rendered)

    def end_pass(self):
        """Applies also what there is of an object that changes are in the middle of: the pass has promised to show all. As `take`."""
        cdef Rendered rendered = Rendered()
        for held in self.held.values():
            rendered.join(<Rendered> held)
        self.held.clear()
        self.unfinished[0] = self.unfinished[1] = 0
        return self.apply(rendered)

    cdef Rendered hold(self, Rendered rendered, uint64_t unfinished, bint walking):
        """Puts parts of unfinished objects aside, the newest in the place of older ones; gives what can be applied."""
        cdef uint32_t i
        cdef Rendered held
        cdef Rendered ready = Rendered()
        cdef uint64_t finished = self.unfinished[walking]
        self.unfinished[walking] = unfinished
        if unfinished and unfinished not in self.held:
            self.held[unfinished] = Rendered()
        for i in range(rendered.run_count):
            held = self.held.get(rendered.runs[i].key >> SLOT)
            (ready if held is None else held).copy(rendered, i)
        if finished and finished != self.unfinished[0] and finished != self.unfinished[1]:
            ready.join(self.held.pop(finished, None) or Rendered())
        return ready

    def apply(self, Rendered rendered not None):
        """Brings parts of objects up to date. Gives steps as `take` does.

        Each object changes at once: nothing is told of it before all its works are made.
        """
        rendered.settle()
        cdef uint32_t done = self.apply_some(rendered, 0)
        if done == rendered.run_count:
            return ()
        return self._apply_on(rendered, done)

    def _apply_on(self, Rendered rendered, uint32_t done):
        """The rest of `apply`, in steps."""
        cdef uint32_t end
        while done < rendered.run_count:
            if self.is_large:
                end = rendered.end_of_object(done)
                yield from self._replace(rendered, done, end)
                if self.stopped:
                    return
                self.revision += 1
                done = end
            yield
            done = self.apply_some(rendered, done)

    cdef uint32_t apply_some(self, Rendered rendered, uint32_t done) except? 0:
        """Objects in one step; gives where it has stopped: after some constructor calls, or at an object that needs steps of its own."""
        cdef uint32_t end, count
        cdef uint32_t calls = 0
        self.is_large = False
        while done < rendered.run_count:
            end = rendered.end_of_object(done)
            count = rendered.count_of(done, end)
            if calls and calls + count > TARGETS_AT_ONCE:
                break
            if count > TARGETS_AT_ONCE or not (self.add(rendered, done, end) or self.replace_in_place(rendered, done, end)):
                self.is_large = True
                break
            if self.stopped:
                return rendered.run_count
            self.revision += 1
            calls += count
            done = end
        return done

    # ---- one object ----

    cdef bint add(self, Rendered rendered, uint32_t start, uint32_t end) except -1:
        """An object that had no targets. False, and nothing is done, if it had some."""
        cdef uint32_t i, j
        cdef Part* part
        for i in range(start, end):
            if self.parts.find(rendered.runs[i].key) != NULL:
                return False
        for i in range(start, end):
            for j in range(rendered.runs[i].first, rendered.runs[i].first + rendered.runs[i].count):
                rendered.entries[j].work = self.makes.make(<object> rendered.entries[j].labels)
                if self.stopped:
                    return True
        for i in range(start, end):
            self.put(rendered, i)
        for i in range(start, end):
            part = self.parts.find(rendered.runs[i].key)
            for j in range(rendered.runs[i].count):
                self.tell(0, part.entries[j].work)
        return True

    cdef int put(self, Rendered rendered, uint32_t run) except -1:
        """A part is now what has been rendered, and the works of that are known."""
        cdef uint32_t i
        cdef Entry* entries = rendered.entries + rendered.runs[run].first
        cdef Part* part
        if not rendered.runs[run].count:
            self.parts.remove(rendered.runs[run].key)
            return 0
        part = new_part(rendered.runs[run].key, rendered.runs[run].count)
        for i in range(part.count):
            part.entries[i] = entries[i]
            entries[i].labels = NULL    # the part has them now
        self.parts.put(part)
        return 0

    cdef bint replace_in_place(self, Rendered rendered, uint32_t start, uint32_t end) except -1:
        """An object with as many targets as before in the same positions: what most events lead to.

        False, and nothing is done, where it is not so, or where some may have shifted; see `_replace`.
        """
        cdef uint32_t i, j
        cdef uint32_t count = 0                         # targets that differ
        cdef Entry* was[TARGETS_AT_ONCE]
        cdef Entry* now[TARGETS_AT_ONCE]
        cdef uint32_t[TARGETS_AT_ONCE] before           # their works
        cdef Part* part
        cdef Entry* entries
        for i in range(start, end):
            part = self.parts.find(rendered.runs[i].key)
            if rendered.runs[i].count != (0 if part == NULL else part.count):
                return False
            entries = rendered.entries + rendered.runs[i].first
            for j in range(rendered.runs[i].count):
                if part.entries[j].position != entries[j].position:
                    return False
                if not are_equal(<object> part.entries[j].labels, <object> entries[j].labels):
                    was[count] = &part.entries[j]
                    now[count] = &entries[j]
                    count += 1
        for i in range(count):
            for j in range(count):
                if i != j and are_equal(<object> was[i].labels, <object> now[j].labels):
                    return False
        for i in range(count):
            now[i].work = self.makes.make(<object> now[i].labels)
            if self.stopped:
                return True
        for i in range(count):
            was[i].labels, now[i].labels = now[i].labels, was[i].labels
            before[i] = was[i].work
            if now[i].work:     # else the constructor has raised, and the work stays
                was[i].work = now[i].work
        for i in range(count):
            if now[i].work:
                self.tell(before[i], now[i].work)
        return True

    def _replace(self, Rendered rendered, uint32_t start, uint32_t end):
        """One object, in steps: a target keeps its work if some target of the object had just its labels; else it is made anew.

        So a work stays also when the position of its address or container shifts.
        """
        cdef dict previous = {}     # (key, position), once each -> (labels, number of the work)
        cdef dict positions = {}    # labels -> those (key, position)
        cdef list missing = []      # ((key, position), entry) of targets that have no work yet
        cdef list changes = []      # numbers of the work that was, and of that which is
        cdef uint32_t i, j, number
        cdef Part* part
        for i in range(start, end):
            part = self.parts.find(rendered.runs[i].key)
            for j in range(0 if part == NULL else part.count):
                where = (part.key, part.entries[j].position)
                while where in previous:        # positions repeat where a container has more than 65,536 ports
                    where += (0,)
                previous[where] = (<object> part.entries[j].labels, part.entries[j].work)
            if (i - start) % PARTS_AT_ONCE == PARTS_AT_ONCE - 1:
                yield
        for i in range(start, end):
            for j in range(rendered.runs[i].first, rendered.runs[i].first + rendered.runs[i].count):
                where = (rendered.runs[i].key, rendered.entries[j].position)
                same = previous.get(where)
                if same is not None and are_equal(same[0], <object> rendered.entries[j].labels):
                    del previous[where]
                    rendered.entries[j].work = same[1]
                else:
                    missing.append((where, j))
            if (i - start) % PARTS_AT_ONCE == PARTS_AT_ONCE - 1:
                yield
        if missing and previous:
            for where, same in previous.items():
                positions.setdefault(same[0], []).append(where)
            left = []
            for where, j in missing:
                found = positions.get(<object> rendered.entries[j].labels)
                if found:
                    rendered.entries[j].work = previous.pop(found.pop())[1]
                else:
                    left.append((where, j))
            missing = left
        for i, (where, j) in enumerate(missing, 1):
            _, replaced = previous.pop(where, (None, 0))
            number = self.makes.make(<object> rendered.entries[j].labels)
            rendered.entries[j].work = number or replaced
            if number:
                changes.append((replaced, number))
            if i % TARGETS_AT_ONCE == 0:
                yield
                if self.stopped:
                    return
        changes.extend([(number, 0) for _, number in previous.values()])
        if self.stopped:
            return
        for i in range(start, end):
            self.put(rendered, i)
        for replaced, number in changes:
            self.tell(replaced, number)
        yield

    cdef int tell(self, uint32_t before, uint32_t now) except -1:
        """What a job learns of a target that had a work and has another: one that others show does not come or go with it."""
        cdef object old = self.makes.works[before]
        cdef object new = self.makes.works[now]
        cdef bint comes = self.makes.show(now, self)
        cdef bint goes = self.makes.drop(before)
        if self.quiet:
            return 0
        if comes and goes:
            if old is not new:
                self.job.updated(old, new)
        elif comes:
            self.job.added(new)
        elif goes:
            self.job.removed(old)
        return 0

    # ---- all targets ----

    @property
    def targets(self) -> int:
        """How many there are; `works` does not count those that show the work of another one, or have none."""
        return self.parts.targets

    def keys(self) -> list:
        """Of the parts that have targets."""
        cdef uint32_t i
        return [self.parts.parts[i].key for i in range(1, self.parts.count + 1)]

    def entries(self) -> list:
        """(position, labels, work) of all targets."""
        cdef uint32_t i, j
        cdef Part* part
        cdef list found = []
        for i in range(1, self.parts.count + 1):
            part = self.parts.parts[i]
            for j in range(part.count):
                found.append((part.entries[j].position, <object> part.entries[j].labels, self.makes.works[part.entries[j].work]))
        return found

    def labels(self) -> list:
        """Of all targets."""
        cdef uint32_t i, j
        cdef Part* part
        cdef list found = []
        for i in range(1, self.parts.count + 1):
            part = self.parts.parts[i]
            for j in range(part.count):
                found.append(<object> part.entries[j].labels)
        return found

    def release(self):
        """Lets go of all targets, in steps."""
        cdef uint32_t j
        cdef Part* part
        self.stopped = True
        self.held.clear()
        while self.parts.count:
            for _ in range(TARGETS_AT_ONCE):
                if self.parts.count:
                    part = self.parts.parts[self.parts.count]
                    for j in range(part.count):
                        self.makes.drop(part.entries[j].work)
                    self.parts.remove(part.key)
            yield
