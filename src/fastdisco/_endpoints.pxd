"""Targets of endpoints and slices: the fields of what writes them, with a line for each."""
from libc.stdint cimport uint8_t, uint32_t

from ._core cimport Record
from ._targets cimport TargetWriter

cdef struct Combined:       # an address of endpoints, or an endpoint of a slice, with what it is combined with
    const uint32_t* words
    uint32_t ports          # the list of ports
    uint32_t first_port     # position of the first of them among all ports of the object
    uint32_t following      # the next address that names the same pod; 0: none
    uint8_t ready

cdef class EndpointsWriter(TargetWriter):
    cdef uint32_t slot              # of the object being rendered
    cdef uint32_t first_part, end_part  # of what is rendered whole: only these at a time
    cdef Combined* addresses        # of it
    cdef uint32_t address_count, address_capacity
    cdef uint32_t flat              # the slot whose addresses these are, for as long as nothing changes; 0: none
    cdef bint chained               # all of them are linked
    cdef bint apart                 # namespaces were named: each sees its own pods only
    cdef uint32_t* last_of          # by part: the last address of that part so far

    cdef int render_slot(self, uint32_t slot, uint32_t part) except -1
    cdef int combined(self, Record* record, uint32_t slot, uint32_t part) except -1
    cdef bint is_apart(self, uint32_t namespace, uint32_t other) noexcept
    cdef bint is_secondary(self, const uint32_t* words, const uint32_t* service) noexcept
    cdef int flatten(self, uint32_t slot, Record* record) except -1
    cdef int flatten_list(self, const uint32_t* words, uint32_t where, int size, uint32_t ports, uint32_t first_port, bint ready) except -1
    cdef int chain(self, uint32_t slot, uint32_t part) except -1
    cdef uint32_t part_of(self, uint32_t slot, uint32_t address) noexcept
    cdef int render_part(self, Record* record, uint32_t part, const uint32_t* service) except -1
    cdef int main_targets(
        self, Record* record, uint32_t at, uint32_t part, const uint32_t* service, const uint32_t* pod,
    ) except -1
    cdef uint32_t number_of(self, const uint32_t* port, bint is_slice) noexcept
    cdef int address_node(self, const uint32_t* address, bint is_slice, uint32_t part, const uint32_t* pod) except -1
    cdef bint shows_target(self, const uint32_t* address) noexcept
    cdef int endpoints_labels(self, Combined* address, const uint32_t* port) except -1
    cdef int slice_labels(self, const uint32_t* words, Combined* address, const uint32_t* port) except -1
    cdef bint matching_container(self, const uint32_t* pod, uint32_t where, uint32_t number, bint init, bint every) except -1
    cdef int extra_targets(self, Record* record, uint32_t part, const uint32_t* service, const uint32_t* pod) except -1
    cdef int extra_containers(
        self, Record* record, uint32_t part, const uint32_t* service, const uint32_t* pod, uint32_t where, bint init, uint32_t position,
    ) except -1
    cdef bint is_covered(self, Record* record, uint32_t part, uint32_t number) noexcept
    cdef bint names_pod(self, const uint32_t* address) noexcept
    cdef uint32_t hosts_of(self, Record* record, uint32_t at) noexcept
