"""One rule over symbols: the fields, with a line for each."""
from libc.stdint cimport uint32_t

from ._core cimport Symbols
from ._memo cimport Memo

cdef enum:                  # kinds of rules: of values, of conditions, of names
    SET, COPY_VALUE, SET_NAMED, KEEP, COPY_LABELS, RENAME_LABELS, KEEP_LABELS

cdef class Step:            # one rule
    cdef object __weakref__
    cdef readonly object rule
    cdef int kind
    cdef uint32_t* sources
    cdef uint32_t source_count
    cdef uint32_t* targets
    cdef uint32_t target_count
    cdef object function
    cdef Memo memo          # by values of the sources; of rules over names by name
    cdef Symbols symbols
    cdef Step guard         # a KEEP, or None
    cdef bint guard_drops
    cdef bint prometheus    # how it sets labels

    cdef int hold_names(self, tuple names, uint32_t** to) except -1
    cdef int outcome(self, const uint32_t* key, uint32_t* result) except -1
    cdef int ask(self, const uint32_t* key, uint32_t* result) except -1
    cdef bint reads(self, list names)
