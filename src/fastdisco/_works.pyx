"""The scrape works of one job: made by its constructor, shared by targets with equal labels where that is wanted.

Labels are compared and hashed as any object is: where the work of a target is its own, nothing is looked up.
"""
import cython
import threading

no_work = object()
NO_WORK = no_work

cdef tuple ALONE = (1, 1)
cdef object ABSENT = object()


cdef class Holder:
    """Whoever has targets: `works` are those of its targets; of shared ones those that it was the first to show."""


@cython.final
cdef class Works:
    """Makes works, and counts the targets of each: it is there from the first that shows it until the last of them goes.

    While `sharing`, targets with equal labels have one work: so a job with rules never has two works that scrape the same. Else each
    target has its own: where discovered labels are shown, nothing is merged. Without a `constructor` the labels are the work.

    A target is counted twice: when its work is made, and when it shows it. Between the two a work may go that others show, and
    come again.
    """

    def __init__(self, constructor, failed, *, bint sharing, int holders=1):
        self.constructor = constructor
        self.sharing = sharing
        self.failed = failed
        self.shared = {}
        self.counts = {}
        self.kept = {}
        self.owners = {} if holders > 1 else None

    cpdef object make(self, object labels):
        """The work of a target, or NO_WORK: the constructor may have raised."""
        cdef object work
        if self.sharing:
            work = self.shared.get(labels, ABSENT)
            if work is not ABSENT:
                self.count(labels, 1, 0)
                return work
        work = self.construct(labels)
        if self.sharing and work is not no_work:
            self.shared[labels] = work
            self.counts[labels] = (1, 0)
        return work

    cdef object make_shown(self, object labels, Holder holder, bint* is_first):
        """`make` and `show` in one, for a target that replaces none; None where there is no work."""
        cdef object work
        if self.sharing and labels in self.shared:
            work = self.make(labels)
            is_first[0] = self.show(labels, work, holder)
            return work
        work = self.construct(labels)
        if work is no_work:
            work = None
        elif self.sharing:
            self.shared[labels] = work
            if self.owners is not None:
                self.owners[labels] = holder
        is_first[0] = work is not None
        holder.works += is_first[0]
        return work

    cdef object construct(self, object labels):
        """What the constructor gives, or NO_WORK if it has raised.

        Whatever it raises is its own failure, except a Ctrl-C, which may come at any line of the main thread.
        """
        if self.constructor is None:
            return labels
        try:
            return self.constructor(labels)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
                raise
            self.failed(error)
            return no_work

    cpdef int keep(self, object before, object work, object labels) except -1:
        """A target that had the labels `before` has others now, and still its work."""
        cdef object made_of = self.made_of(before, work, True)
        if made_of is not None:
            self.kept.setdefault((labels, id(work)), []).append(made_of)
        return 0

    cpdef bint show(self, object labels, object work, Holder holder) except -1:
        """A target shows what `make` gave; whether it is the first to show it."""
        if self.shared and self.shared.get(labels, ABSENT) is work:
            if self.count(labels, 0, 1) > 1:
                return False
            if self.owners is not None:
                self.owners[labels] = holder
        holder.works += work is not None
        return work is not None

    cpdef bint drop(self, object labels, object work, Holder holder) except -1:
        """A target that showed it goes; whether it was the last."""
        cdef object made_of = self.made_of(labels, work, True)
        if made_of is not None:
            if self.count(made_of, -1, -1):
                return False
            if self.owners is not None:
                holder = self.owners.pop(made_of, holder)
        holder.works -= work is not None
        return work is not None

    def distinct(self, entries) -> list:
        """The works that targets, (position, labels, work), show, each once."""
        cdef list found = []
        cdef set seen = set()
        for _, labels, work in entries:
            if work is None:
                continue
            if self.counts:
                made_of = self.made_of(labels, work, False)
                if made_of in self.counts:
                    if made_of in seen:
                        continue
                    seen.add(made_of)
            found.append(work)
        return found

    @property
    def duplicates(self) -> int:
        """Targets that show the work of another one."""
        return sum([shown - 1 for labels, (_, shown) in list(self.counts.items()) if shown > 1 and self.shared[labels] is not None])

    @property
    def remembered(self) -> int:
        """Entries about shared works; none once no target has one."""
        return len(self.shared) + len(self.counts) + len(self.kept) + len(self.owners or ())

    def forget(self) -> None:
        """The job has stopped: what was made and never shown goes too."""
        for some in (self.shared, self.counts, self.kept, self.owners or {}):
            some.clear()

    cdef object made_of(self, object labels, object work, bint forget):
        """The labels that the shared work of a target was made of; None if it is not shared. `forget`: the target has it no longer."""
        if self.kept:
            kept = self.kept.get((labels, id(work)))
            if kept is not None:
                made_of = kept.pop()
                if not forget:
                    kept.append(made_of)
                elif not kept:
                    del self.kept[labels, id(work)]
                return made_of
        return labels if self.shared and self.shared.get(labels, ABSENT) is work else None

    cdef long count(self, object labels, long having, long showing) except -1:
        """How many targets show it now."""
        cdef long have, show
        have, show = self.counts.pop(labels, ALONE) if self.counts else ALONE
        have += having
        show += showing
        if not have:
            del self.shared[labels]
        elif have != 1 or show != 1:
            self.counts[labels] = (have, show)
        return show
