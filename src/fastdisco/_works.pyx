"""The scrape works of one job: made by its constructor, shared by targets with equal labels where that is wanted.

A target knows its work by number; 0 stands for none.
"""
import cython
import threading

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdint cimport uint32_t
from libc.stdlib cimport free
from libc.string cimport memcmp

from ._index cimport hash_words, index_add, index_free, index_next, index_probe, index_probe_t, index_remove
from ._labels cimport Labels
from ._parts cimport grown


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

    def __init__(self, constructor, failed, *, bint sharing):
        self.constructor = constructor
        self.sharing = sharing
        self.failed = failed
        self.holders = []
        self.works = [None]

    def __dealloc__(self):
        cdef uint32_t i
        for i in range(1, self.top + 1):
            Py_XDECREF(self.made[i].labels)
        free(self.made)
        index_free(&self.index)

    def __len__(self):
        """Works that some target has, shown or not."""
        cdef uint32_t i
        cdef Py_ssize_t count = 0
        for i in range(1, self.top + 1):
            count += self.made[i].having != 0
        return count

    def join(self, Holder holder not None) -> None:
        """To be called once for whoever will show works."""
        holder.place = <uint32_t> len(self.holders)
        self.holders.append(holder)

    cpdef uint32_t make(self, object labels) except? 0:
        """The number of a target's work; 0 where the constructor raised.

        Whatever it raises is its own failure, except a Ctrl-C, which may come at any line of the main thread.
        """
        cdef uint32_t number
        cdef bint shared = self.sharing     # the constructor may change that
        cdef uint32_t hash = hash_of(labels) if shared else 0
        if shared:
            number = self.find(labels, hash)
            if number:
                self.made[number].having += 1
                return number
        work = labels
        if self.constructor is not None:
            try:
                work = self.constructor(labels)
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
                    raise
                self.failed(error)
                return 0
        number = self.new_number()
        Py_INCREF(labels)
        self.made[number] = Made(<PyObject*> labels, hash, 1, 0, 0, False)
        self.works[number] = work
        if shared:
            if not index_add(&self.index, hash, number):
                self.forget_work(number)
                raise MemoryError
            self.made[number].shared = True
        return number

    cpdef bint show(self, uint32_t number, Holder holder) except -1:
        """A target shows what `make` gave; whether a work appears by that."""
        if number == 0:
            return False
        self.made[number].showing += 1
        if self.made[number].showing > 1 or self.works[number] is None:
            return False
        self.made[number].holder = holder.place
        holder.works += 1
        return True

    cpdef bint drop(self, uint32_t number) except -1:
        """A target that showed it goes; whether a work disappears by that."""
        cdef Holder first
        cdef bint is_last = False
        if number == 0:
            return False
        self.made[number].showing -= 1
        if self.made[number].showing == 0 and self.works[number] is not None:
            is_last = True
            first = <Holder> self.holders[self.made[number].holder]
            first.works -= 1
        self.made[number].having -= 1
        if self.made[number].having == 0:
            self.forget_work(number)
        return is_last

    def work(self, uint32_t number):
        """None where the number is 0, and where that is what the constructor gave."""
        return self.works[number]

    def shown(self) -> list:
        """Those that some target shows, each once."""
        cdef uint32_t i
        return [self.works[i] for i in range(1, self.top + 1) if self.made[i].showing and self.works[i] is not None]

    @property
    def duplicates(self) -> int:
        """Targets that show the work of another one."""
        cdef uint32_t i
        cdef long count = 0
        for i in range(1, self.top + 1):
            if self.made[i].showing > 1 and self.works[i] is not None:
                count += self.made[i].showing - 1
        return count

    def forget(self) -> None:
        """The job has stopped: what was made and never shown goes too."""
        cdef uint32_t i
        for i in range(1, self.top + 1):
            if self.made[i].having:
                self.forget_work(i)

    cdef uint32_t find(self, object labels, uint32_t hash) except? 0:
        """The number of the shared work of these labels, or 0."""
        cdef index_probe_t probe = index_probe(&self.index, hash)
        cdef uint32_t number
        while True:
            number = index_next(&probe)
            if number == 0 or are_equal(labels, <object> self.made[number].labels):
                return number

    cdef uint32_t new_number(self) except 0:
        cdef uint32_t number = self.free
        if number:
            self.free = self.made[number].hash
            return number
        if self.top + 1 >= self.capacity:
            self.made = <Made*> grown(self.made, &self.capacity, sizeof(Made))
        self.works.append(None)
        self.top += 1
        return self.top

    cdef int forget_work(self, uint32_t number) except -1:
        """The number is free again."""
        cdef PyObject* labels = self.made[number].labels
        if self.made[number].shared:
            index_remove(&self.index, self.made[number].hash, number)
        self.made[number] = Made(NULL, self.free, 0, 0, 0, False)
        self.free = number
        # last: what goes with these may be anybody's code
        self.works[number] = None
        Py_XDECREF(labels)
        return 0


cdef uint32_t hash_of(object labels) except? 0:
    """Of label sets by their ids: those of one job have one table of symbols."""
    cdef Labels known
    if isinstance(labels, Labels):
        known = <Labels> labels
        return hash_words(known.ids, known.shape.count) ^ known.shape.hash
    return <uint32_t> <Py_ssize_t> hash(labels)


cdef bint are_equal(object first, object second) except -1:
    cdef Labels a
    cdef Labels b
    if first is second:
        return True
    if isinstance(first, Labels) and isinstance(second, Labels):
        a = <Labels> first
        b = <Labels> second
        if a.shapes is b.shapes:
            return a.shape == b.shape and memcmp(a.ids, b.ids, a.shape.count * sizeof(uint32_t)) == 0
    return first == second
