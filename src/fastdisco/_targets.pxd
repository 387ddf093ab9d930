"""Targets of what stands alone: the fields of what writes them, with a line for each."""
from libc.stdint cimport uint32_t

from ._core cimport Record
from ._writer cimport LabelWriter

cdef class TargetWriter(LabelWriter):
    cdef uint32_t[6] address_types  # of nodes, best first

    cdef int node(self, const uint32_t* words) except -1
    cdef int node_conditions(self, const uint32_t* words) except -1
    cdef bint is_hidden(self, const uint32_t* pair, const uint32_t* other) except -1
    cdef int pod(self, const uint32_t* words) except -1
    cdef int pod_containers(self, const uint32_t* words, uint32_t where, uint32_t statuses, bint init, uint32_t position) except -1
    cdef const uint32_t* status_of(self, const uint32_t* words, uint32_t statuses, uint32_t name) noexcept
    cdef int pod_place(self, const uint32_t* words) except -1
    cdef int node_labels(self, uint32_t name) except -1
    cdef int pod_labels(self, const uint32_t* words) except -1
    cdef int workload_labels(self, const uint32_t* words) except -1
    cdef int owner_label(self, const uint32_t* words, int kind, uint32_t wanted, int label) except -1
    cdef int container_labels(self, const uint32_t* container, bint init) except -1
    cdef int container_port_labels(self, const uint32_t* port) except -1
    cdef int namespace_labels(self, uint32_t namespace) except -1
    cdef int service(self, const uint32_t* words) except -1
    cdef int service_labels(self, const uint32_t* words, bint own) except -1
    cdef uint32_t balancer_address(self, const uint32_t* words) except 0
    cdef int ingress(self, const uint32_t* words) except -1
    cdef bint has_tls(self, const uint32_t* words, uint32_t host) noexcept
