"""The scrape works of a job: the fields, with a line for each."""

cdef object no_work         # what stands for the work of a target that got none: its constructor raised

cdef class Holder:
    cdef public long works

cdef class Works:
    cdef public object constructor
    cdef public bint sharing
    cdef object failed          # told of what a constructor raised
    cdef dict shared            # Labels -> work; without an object of its own for each work: garbage collections visit those
    cdef dict counts            # Labels -> targets that have the work, and that show it; if it is not just one
    cdef dict kept              # (Labels, id of a work that was made of others) -> list of those others
    cdef dict owners            # Labels -> the holder that was the first to show the work; None: there is one holder only

    cpdef object make(self, object labels)
    cdef object make_shown(self, object labels, Holder holder, bint* is_first)
    cdef object construct(self, object labels)
    cpdef int keep(self, object before, object work, object labels) except -1
    cpdef bint show(self, object labels, object work, Holder holder) except -1
    cpdef bint drop(self, object labels, object work, Holder holder) except -1
    cdef object made_of(self, object labels, object work, bint forget)
    cdef long count(self, object labels, long having, long showing) except -1
