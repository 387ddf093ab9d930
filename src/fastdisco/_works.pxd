"""The scrape works of a job: the fields, with a line for each."""
from cpython.object cimport PyObject
from libc.stdint cimport uint32_t

from ._index cimport index_t

cdef struct Made:           # of a work
    PyObject* labels        # what it was made of; owned
    uint32_t hash           # of the labels
    uint32_t having         # targets that have it; 0: the number is free
    uint32_t showing        # targets that show it
    uint32_t holder         # the place, among the holders, of the one that was the first to show it
    bint shared             # found by its labels

cdef class Holder:
    cdef public long works
    cdef uint32_t place     # among those of its job

cdef class Works:
    cdef public object constructor
    cdef public bint sharing
    cdef object failed      # told of what a constructor raised
    cdef list holders
    cdef list works         # by number, from 1 on
    cdef Made* made         # likewise
    cdef uint32_t top, capacity
    cdef uint32_t free      # a free number, whose `hash` is the next one; 0: none
    cdef index_t index      # shared works by their labels

    cpdef uint32_t make(self, object labels) except? 0
    cpdef bint show(self, uint32_t number, Holder holder) except -1
    cpdef bint drop(self, uint32_t number) except -1
    cdef uint32_t find(self, object labels, uint32_t hash) except? 0
    cdef uint32_t new_number(self) except 0
    cdef int forget_work(self, uint32_t number) except -1

cdef bint are_equal(object first, object second) except -1
