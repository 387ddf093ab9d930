"""Rendering of what has changed, or of everything: the fields are those of the writer."""
from libc.stdint cimport uint32_t, uint64_t

from ._endpoints cimport EndpointsWriter

cdef class Renderer(EndpointsWriter):
    cdef uint32_t rest              # a slot of which some parts were rendered and the others wait for the next `render`; 0: none
    cdef uint32_t rest_part, rest_end   # these

    cdef int go_on(self, Py_ssize_t budget) except -1
    cdef int put_down(self, uint32_t slot) except -1
    cdef uint32_t some_parts(self, uint32_t slot, uint32_t part, uint32_t end, uint64_t wanted, Py_ssize_t budget) except? 0
    cdef uint32_t parts_now(self, uint32_t slot) except? 0
    cdef void end_batch(self) noexcept
    cdef int render_profiles(self, uint32_t slot, uint32_t part, uint64_t wanted) except -1
    cdef int count_subscriber(self, int kind, int profile, int by) except -1
