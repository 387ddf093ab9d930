"""The targets of one configuration of one job: rendered labels become scrape works, and differences become changes.

    batch -> parts that have targets after the rules -> object by object: what was, what is -> works made, and told to the job

What takes long is done in steps, and the loop may go on between two of them.
"""
import cython
from libc.stdint cimport uint64_t

from ._batch cimport Batch
from ._works cimport Holder, Works, no_work

PART_BITS = 24
"""A key is the object's slot above these bits, and a part of the object in them."""

cdef enum:
    SLOT = 24                   # PART_BITS
    TARGETS_AT_ONCE = 32        # constructor calls of a step
    PARTS_AT_ONCE = 500         # of one object, compared in a step
    EFFORT_AT_ONCE = 20_000     # of rules, likewise: a few milliseconds; see `Relabeling.survivors`

    WIDTH = 3                   # of a target in a part: position, labels, work; None for a work: it has none
    LABELS = 1
    WORK = 2


@cython.final
cdef class Subscriber(Holder):
    """What one configuration of a job has made of a group's objects; `working` once its first pass over them is complete.

    Its job is told `caught_up()`, `failed(error)`, `added(work)`, `updated(old, new)` and `removed(work)`.
    """

    cdef readonly object job
    cdef readonly str role
    cdef readonly int profile
    cdef readonly tuple needs
    cdef public object relabeling       # None: targets have their discovered labels, all of them
    cdef public bint working
    cdef public bint stale              # some of its targets have yet to be evaluated by the rules that it has now
    cdef public bint stopped
    cdef readonly long long revision    # rises when a target's labels may have changed, also ones that no rule has looked at
    cdef Works makes
    cdef dict parts                     # key -> (position, labels, work, ...); a part without targets is not in it
    cdef dict held                      # slot -> what has been rendered of an object that is not rendered to its end, by key
    cdef uint64_t[2] unfinished         # the slot with which the last batch of changes ended, and that of a pass; 0: none
    cdef bint is_large                  # the object at which `apply_some` has stopped needs steps of its own

    def __init__(self, job, str role not None, int profile, tuple needs not None, Works makes not None, relabeling=None):
        self.job = job
        self.role = role
        self.profile = profile
        self.needs = needs
        self.relabeling = relabeling
        self.makes = makes
        self.parts = {}
        self.held = {}

    # ---- batches ----

    def take(self, Batch batch not None, below, *, bint walking=False):
        """Brings what a batch has rendered up to date, of parts before the key `below`; gives the steps that are left to do.

        Of an object that goes on in the next batch of its kind, changes or a pass, everything waits for its last part.
        """
        cdef object row = None
        keys = batch.key_set(self.role, below)
        if not keys and not self.held:
            return ()
        if self.relabeling is None:
            rendered = batch.targets(self.role, self.profile, below)
        else:
            rendered, row = self.relabeling.survivors(batch, self.role, self.profile, below, effort=EFFORT_AT_ONCE)
        if row is not None or self.held or batch.unfinished:
            return self._take_on(batch, below, walking, keys, rendered, row)
        return self.apply(keys, rendered)

    def _take_on(self, Batch batch, below, bint walking, keys, list rendered, row):
        """The rest of `take`, in steps."""
        relabeling = self.relabeling
        while row is not None:
            yield
            more, row = relabeling.survivors(batch, self.role, self.profile, below, row=row, effort=EFFORT_AT_ONCE)
            rendered += more
        if self.held or batch.unfinished:
            keys, rendered = self.hold(keys, rendered, batch.unfinished, walking)
        yield from self.apply(keys, rendered)

    def end_pass(self):
        """Applies also what there is of an object that changes are in the middle of: the pass has promised to show all. As `take`."""
        held = {key: targets for parts in self.held.values() for key, targets in parts.items()}
        self.held.clear()
        self.unfinished[0] = self.unfinished[1] = 0
        return self.apply(held.keys(), [part for part in sorted(held.items()) if part[1]])

    cdef tuple hold(self, keys, list rendered, uint64_t unfinished, bint walking):
        """Puts parts of unfinished objects aside, the newest in the place of older ones; gives what can be applied."""
        cdef uint64_t finished = self.unfinished[walking]
        self.unfinished[walking] = unfinished
        if unfinished:
            self.held.setdefault(unfinished, {})
        fresh = dict(rendered)
        ready = set()
        for key in keys:
            held = self.held.get(key >> PART_BITS)
            if held is None:
                ready.add(key)
            else:
                held[key] = fresh.pop(key, ())
        whole = [part for part in rendered if part[0] in fresh]
        if finished and finished != self.unfinished[0] and finished != self.unfinished[1]:
            held = self.held.pop(finished, {})
            ready |= held.keys()
            whole += [part for part in sorted(held.items()) if part[1]]
        return ready, whole

    def apply(self, keys, rendered):
        """Brings parts of objects up to date: those of `keys` have what `rendered` says, or nothing. Gives steps as `take` does.

        Each object changes at once: nothing is told of it before all its works are made.
        """
        cdef dict fresh = dict(rendered)
        cdef list parts = sorted(fresh.keys() | (self.parts.keys() & keys))
        cdef Py_ssize_t done = self.apply_some(parts, fresh, 0)
        if done == len(parts):
            return ()
        return self._apply_on(parts, fresh, done)

    def _apply_on(self, list parts, dict fresh, Py_ssize_t done):
        """The rest of `apply`, in steps."""
        cdef Py_ssize_t end
        while done < len(parts):
            if self.is_large:
                end = end_of_object(parts, done)
                yield from self._replace(parts[done:end], fresh)
                if self.stopped:
                    return
                self.revision += 1
                done = end
            yield
            done = self.apply_some(parts, fresh, done)

    cdef Py_ssize_t apply_some(self, list parts, dict fresh, Py_ssize_t done) except -1:
        """Objects in one step; gives where it has stopped: after some constructor calls, or at an object that needs steps of its own."""
        cdef Py_ssize_t end, i
        cdef Py_ssize_t calls = 0
        cdef Py_ssize_t count
        self.is_large = False
        while done < len(parts):
            end = end_of_object(parts, done)
            count = 0
            for i in range(done, end):
                count += len(<tuple> fresh.get(parts[i], ()))
            if calls and calls + count > TARGETS_AT_ONCE:
                break
            if count > TARGETS_AT_ONCE or not (self.add(parts, done, end, fresh) or self.replace_in_place(parts, done, end, fresh)):
                self.is_large = True
                break
            if self.stopped:
                return len(parts)
            self.revision += 1
            calls += count
            done = end
        return done

    # ---- one object ----

    cdef bint add(self, list parts, Py_ssize_t start, Py_ssize_t end, dict fresh) except -1:
        """An object that had no targets. False, and nothing is done, if it had some."""
        cdef Py_ssize_t i
        cdef bint is_first
        cdef list fields
        cdef list made = []
        cdef list shown = []
        cdef tuple target
        for i in range(start, end):
            if parts[i] in self.parts:
                return False
        for i in range(start, end):
            fields = []
            for target in <tuple> fresh[parts[i]]:
                work = self.makes.make_shown(target[1], self, &is_first)
                if self.stopped:
                    return True
                fields.append(target[0])
                fields.append(target[1])
                fields.append(work)
                if is_first:
                    shown.append(work)
            made.append(tuple(fields))
        for i in range(start, end):
            self.parts[parts[i]] = made[i - start]
        for work in shown:
            self.job.added(work)
        return True

    cdef bint replace_in_place(self, list parts, Py_ssize_t start, Py_ssize_t end, dict fresh) except -1:
        """An object of one part with as many targets as before, in the same positions: what most events lead to.

        False, and nothing is done, where it is not so, or where some may have shifted; see `_replace`.
        """
        cdef Py_ssize_t i, j
        cdef Py_ssize_t[TARGETS_AT_ONCE] differing
        cdef bint[TARGETS_AT_ONCE] is_made
        cdef Py_ssize_t count = 0       # of those
        cdef tuple before, target
        cdef list after
        if end - start > 1:
            return False
        before = <tuple> self.parts.get(parts[start], ())
        cdef tuple now = <tuple> fresh.get(parts[start], ())
        if len(now) * WIDTH != len(before):
            return False
        for i in range(len(now)):
            target = <tuple> now[i]
            if before[i * WIDTH] != target[0]:
                return False
            if before[i * WIDTH + LABELS] != target[1]:
                differing[count] = i
                count += 1
        for i in range(count):
            for j in range(count):
                if i != j and before[differing[i] * WIDTH + LABELS] == (<tuple> now[differing[j]])[1]:
                    return False
        after = list(before)
        for i in range(count):
            target = <tuple> now[differing[i]]
            work = self.makes.make(target[1])
            if self.stopped:
                return True
            is_made[i] = work is not no_work
            after[differing[i] * WIDTH + LABELS] = target[1]
            if is_made[i]:
                after[differing[i] * WIDTH + WORK] = work
        if count:
            self.parts[parts[start]] = tuple(after)
        for i in range(count):
            j = differing[i] * WIDTH
            if is_made[i]:
                self.tell(before[j + LABELS], before[j + WORK], True, after[j + LABELS], after[j + WORK], True)
            else:
                self.makes.keep(before[j + LABELS], before[j + WORK], after[j + LABELS])
        return True

    def _replace(self, list keys, dict fresh):
        """One object, in steps: a target keeps its work if some target of the object had just its labels; else it is made anew.

        So a work stays also when the position of its address or container shifts.
        """
        cdef dict previous = {}     # (key, position) -> (position, labels, work)
        cdef dict made = {}         # key -> list of such entries
        cdef list missing = []      # (key, place in made, position, labels)
        cdef list changes = []      # what was, what is, and whether the one replaces the other
        cdef Py_ssize_t count = 0
        for key in keys:
            for entry in entries_of(<tuple> self.parts.get(key, ())):
                previous[key, entry[0]] = entry
            count += 1
            if count % PARTS_AT_ONCE == 0:
                yield
        for key in keys:
            entries = []
            for position, labels in fresh.get(key, ()):
                same = previous.get((key, position))
                if same is not None and same[1] == labels:
                    del previous[key, position]
                    entries.append(same)
                else:
                    missing.append((key, len(entries), position, labels))
                    entries.append(None)
            made[key] = entries
            count += 1
            if count % PARTS_AT_ONCE == 0:
                yield
        if missing and previous:
            missing = shifted(missing, previous, made)
        count = 0
        for key, place, position, labels in missing:
            replaced = previous.pop((key, position), None)
            work = self.makes.make(labels)
            is_made = work is not no_work
            if not is_made:
                work = None if replaced is None else replaced[2]
            entry = (position, labels, work)
            made[key][place] = entry
            changes.append((replaced, entry, is_made))
            count += 1
            if count % TARGETS_AT_ONCE == 0:
                yield
                if self.stopped:
                    return
        changes.extend([(entry, None, True) for entry in previous.values()])
        if self.stopped:
            return
        for key, entries in made.items():
            if entries:
                self.parts[key] = tuple([field for entry in entries for field in entry])
            else:
                self.parts.pop(key, None)
        for replaced, entry, is_made in changes:
            if is_made:
                self.tell(
                    None if replaced is None else replaced[1], None if replaced is None else replaced[2], replaced is not None,
                    None if entry is None else entry[1], None if entry is None else entry[2], entry is not None,
                )
            elif replaced is not None and entry is not None:
                self.makes.keep(replaced[1], replaced[2], entry[1])
        yield

    cdef int tell(self, object before, object old, bint was, object labels, object work, bint is_now) except -1:
        """What a job learns of a target that had labels and a work, and has others: a work that others show does not come or go with it."""
        cdef bint comes = is_now and self.makes.show(labels, work, self)
        cdef bint goes = was and self.makes.drop(before, old, self)
        if comes and goes:
            if old is not work:
                self.job.updated(old, work)
        elif comes:
            self.job.added(work)
        elif goes:
            self.job.removed(old)
        return 0

    # ---- all targets ----

    @property
    def targets(self) -> int:
        """How many there are; see `works` for how many of them have a work that is not counted before."""
        cdef Py_ssize_t count = 0
        for part in self.parts.values():
            count += len(<tuple> part)
        return count // WIDTH

    def keys(self) -> list:
        """Of the parts that have targets."""
        return list(self.parts)

    def labels(self) -> list:
        """Of all targets."""
        cdef list found = []
        for part in self.parts.values():
            found += (<tuple> part)[LABELS::WIDTH]
        return found

    def entries(self) -> list:
        """All targets, as (position, labels, work); see `Works.distinct` for their works."""
        return [entry for part in self.parts.values() for entry in entries_of(<tuple> part)]

    def release(self):
        """Lets go of all targets, in steps."""
        self.stopped = True
        self.held.clear()
        while self.parts:
            for _ in range(min(TARGETS_AT_ONCE, len(self.parts))):
                _, part = self.parts.popitem()
                for _, labels, work in entries_of(<tuple> part):
                    self.makes.drop(labels, work, self)
            yield


cdef Py_ssize_t end_of_object(list parts, Py_ssize_t start) except -1:
    """Where the keys of the next object begin."""
    cdef uint64_t slot = <uint64_t> parts[start] >> SLOT
    cdef Py_ssize_t end = start + 1
    while end < len(parts) and <uint64_t> parts[end] >> SLOT == slot:
        end += 1
    return end


cdef list entries_of(tuple part):
    """The targets of a part, one by one."""
    return [part[i:i + WIDTH] for i in range(0, len(part), WIDTH)]


cdef list shifted(list missing, dict previous, dict made):
    """Gives targets whose labels some other position had the work from there; the targets that are left."""
    cdef dict positions = {}
    cdef list left = []
    for where, entry in previous.items():
        positions.setdefault(entry[1], []).append(where)
    for key, place, position, labels in missing:
        same = positions.get(labels)
        if same:
            made[key][place] = (position, labels, previous.pop(same.pop())[2])
        else:
            left.append((key, place, position, labels))
    return left
