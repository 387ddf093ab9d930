"""Rendered targets of some objects: the fields, with a line for each."""
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from ._core cimport Store
from ._labels cimport LabelShape, Shapes

cdef enum:
    PART_BITS = 24          # a key is slot << PART_BITS | part
    MOST_PARTS = (1 << PART_BITS) - 1

cdef struct Row:            # one rendered part of an object
    uint64_t key
    uint8_t kind, profile
    uint32_t first, count   # targets

cdef struct Target:
    LabelShape* shape       # owned
    uint64_t ident          # position in the object; see Batch.targets
    uint32_t values         # where in the batch's values

cdef struct Touched:        # a part that was rendered, with or without targets
    uint64_t key
    uint8_t kind

cdef class Batch:
    cdef Store store
    cdef Shapes shapes
    cdef Row* rows
    cdef size_t row_count, row_capacity
    cdef Target* found
    cdef size_t target_count, target_capacity
    cdef uint32_t* values
    cdef size_t value_count, value_capacity
    cdef Touched* touched
    cdef size_t touched_count, touched_capacity
    cdef uint32_t* held             # slots that must not be freed yet
    cdef size_t held_count, held_capacity
    cdef dict made                  # (kind, profile) -> what `targets` gave
    cdef public uint32_t unfinished  # the slot with which it ends before the object's last part, which a later batch has; 0: none
    cdef bint closed

    cdef int begin(self, uint64_t key, int kind, int profile) except -1
    cdef int add(self, LabelShape* shape, const uint32_t* values, const uint32_t* places, uint64_t ident) except -1
    cdef int touch(self, uint32_t slot, uint32_t part, int kind) except -1
    cdef int hold(self, uint32_t slot) except -1
    cdef int shut(self) except -1
