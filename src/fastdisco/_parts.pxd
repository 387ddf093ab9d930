"""Targets by part: the fields, with a line for each."""
from cpython.object cimport PyObject
from libc.stdint cimport uint32_t, uint64_t

from ._index cimport index_t

cdef void* grown(void* block, uint32_t* capacity, size_t size) except NULL

cdef enum:
    SLOT = 24               # bits of a key below the slot of its object

cdef struct Entry:          # a target
    uint64_t position       # in its part
    PyObject* labels        # owned
    uint32_t work           # its number among the works of the job; 0: it has none

cdef struct Part:           # what a job has of a part of an object
    uint64_t key
    uint32_t id
    uint32_t count
    Entry entries[1]

cdef class Parts:
    cdef Part** parts       # by id, from 1 on, without gaps
    cdef uint32_t count, capacity
    cdef size_t targets     # of all parts
    cdef index_t index

    cdef Part* find(self, uint64_t key) noexcept
    cdef int put(self, Part* part) except -1
    cdef void remove(self, uint64_t key) noexcept

cdef struct Run:            # a part as it has been rendered
    uint64_t key
    uint32_t first, count   # entries

cdef class Rendered:
    cdef Run* runs
    cdef uint32_t run_count, run_capacity
    cdef Entry* entries
    cdef uint32_t entry_count, entry_capacity

    cdef int begin(self, uint64_t key) except -1
    cdef int add(self, uint64_t position, object labels) except -1
    cdef int extend(self, parts) except -1
    cdef int join(self, Rendered other) except -1
    cdef int copy(self, Rendered other, uint32_t run) except -1
    cdef void settle(self) noexcept
    cdef uint32_t end_of_object(self, uint32_t start) noexcept
    cdef uint32_t count_of(self, uint32_t start, uint32_t end) noexcept
    cdef list listed(self)

cdef Part* new_part(uint64_t key, uint32_t count) except NULL
cdef void free_part(Part* part) noexcept
