"""Rendering of what has changed, or of everything: the fields are those of the writer."""
from libc.stdint cimport uint32_t, uint64_t

from ._endpoints cimport EndpointsWriter

cdef class Renderer(EndpointsWriter):
    cdef int touch_parts(self, uint32_t slot, uint32_t part) except -1
    cdef uint32_t parts_now(self, uint32_t slot) except? 0
    cdef int render_profiles(self, uint32_t slot, uint32_t part, uint64_t wanted) except -1
    cdef int count_subscriber(self, int kind, int profile, int by) except -1
