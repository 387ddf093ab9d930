"""Remembered outcomes: the fields, with a line for each."""
from libc.stdint cimport uint32_t, uint64_t

from ._core cimport IdTable, Symbols
from ._index cimport index_t

cdef enum:
    RECENT = 128

cdef class Memo(IdTable):
    cdef Symbols symbols
    cdef readonly uint32_t width    # ids of a key
    cdef readonly uint32_t results  # words of an outcome
    cdef bint owns                  # outcomes are symbols, owned
    cdef bint ages                  # what only this table has, and nobody has asked for since the sweep before, is given up
    cdef uint32_t stride
    cdef uint32_t[RECENT] recent    # of keys of one id, by its low bits: the entry found last
    cdef uint32_t* entries          # from 1 on: hash, used, key, outcome
    cdef uint32_t top, free, capacity
    cdef uint32_t bound             # entries; then all are forgotten
    cdef uint32_t cursor            # of `forget_doomed`
    cdef index_t index
    cdef uint64_t lookups, hits     # since the hit rate was judged last
    cdef readonly bint given_up     # the hit rate stayed under a tenth

    cdef inline void count_hit(self) noexcept:
        """Somebody knew the outcome without looking it up."""
        self.lookups += 1
        self.hits += 1

    cdef uint32_t* find(self, const uint32_t* key) noexcept
    cdef uint32_t* remember(self, const uint32_t* key, const uint32_t* outcome) except? NULL
    cdef void forget(self, uint32_t id) noexcept
    cdef void forget_all(self) noexcept
    cdef void judge(self) noexcept
