"""The labels of one target while rules run: the fields, with a line for each."""
from libc.stdint cimport int64_t, uint32_t

from ._core cimport Symbols
from ._steps cimport Step

cdef class LabelList:
    cdef Symbols symbols
    cdef uint32_t* names
    cdef uint32_t* values
    cdef uint32_t count, capacity
    cdef uint32_t given     # in Prometheus' dialect: the labels in front that no rule has set
    cdef bint repeats       # names may repeat
    cdef uint32_t* key      # scratch of a rule: the values that it reads
    cdef uint32_t* result   # and its outcome
    cdef int64_t effort     # spent so far; see `Relabeling.survivors`

    cdef void clear(self) noexcept
    cdef list listed(self)
    cdef int apply(self, Step step) except -1
    cdef int apply_to_names(self, Step step) except -1
    cdef uint32_t guarded(self, Step guard) except? 2
    cdef int copy_snapshot(self, Step step, uint32_t count) except -1
    cdef int read(self, Step step, uint32_t* key) except -1
    cdef int push(self, uint32_t name, uint32_t value) except -1
    cdef int assign(self, uint32_t name, uint32_t value, bint prometheus) except -1
    cdef void remove(self, uint32_t at) noexcept
    cdef int position(self, uint32_t name) noexcept
    cdef uint32_t value_of(self, uint32_t name) noexcept
    cdef int strip(self, uint32_t address) noexcept
    cdef bint is_shown(self, uint32_t name) noexcept
