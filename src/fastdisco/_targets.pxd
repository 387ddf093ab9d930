"""Targets of one object: the fields of what writes them, with a line for each."""
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from ._core cimport Record, Store, Symbols
from ._batch cimport Batch
from ._labels cimport Shapes

cdef enum:                  # label names that the roles write, by their place in NAMES
    ADDRESS, INSTANCE, L_NAMESPACE
    NODE_NAME, L_NODE_PROVIDER_ID
    POD_NAME, L_POD_IP, L_POD_READY, L_POD_PHASE, L_POD_NODE_NAME, L_POD_HOST_IP, L_POD_UID, L_POD_CONTROLLER_KIND, L_POD_CONTROLLER_NAME
    L_CONTAINER_NAME, L_CONTAINER_IMAGE, L_CONTAINER_INIT, L_CONTAINER_ID
    L_CONTAINER_PORT_NAME, L_CONTAINER_PORT_NUMBER, L_CONTAINER_PORT_PROTOCOL
    L_SERVICE_NAME, L_SERVICE_PORT_NAME, L_SERVICE_PORT_NUMBER, L_SERVICE_PORT_PROTOCOL
    L_SERVICE_TYPE, L_SERVICE_CLUSTER_IP, L_SERVICE_EXTERNAL_NAME
    L_ENDPOINTS_NAME, L_ENDPOINT_READY, L_ENDPOINT_PORT_NAME, L_ENDPOINT_PORT_PROTOCOL
    L_ENDPOINT_TARGET_KIND, L_ENDPOINT_TARGET_NAME, L_ENDPOINT_NODE_NAME, L_ENDPOINT_HOSTNAME
    L_SLICE_NAME, L_SLICE_ADDRESS_TYPE, L_SLICE_READY, L_SLICE_SERVING, L_SLICE_TERMINATING
    L_SLICE_PORT_NAME, L_SLICE_PORT_PROTOCOL, L_SLICE_PORT, L_SLICE_PORT_APP_PROTOCOL
    L_SLICE_TARGET_KIND, L_SLICE_TARGET_NAME, L_SLICE_HOSTNAME, L_SLICE_NODE_NAME
    L_INGRESS_NAME, L_INGRESS_SCHEME, L_INGRESS_HOST, L_INGRESS_PATH, L_INGRESS_CLASS_NAME
    LABEL_NAMES

cdef enum:                  # values and texts that roles compare with or write, by their place in WORDS
    W_POD, W_ALWAYS, W_SUCCEEDED, W_FAILED, W_UNKNOWN, W_ZERO, W_EXTERNAL_NAME, W_HTTP, W_HTTPS, W_SLASH
    KNOWN_WORDS

cdef enum:                  # label families: derived from a key; 4 a kind (label, labelpresent, annotation, annotationpresent), and
    F_NODE_ADDRESS = 28
    F_TOPOLOGY, F_TOPOLOGY_PRESENT

cdef struct Combined:       # an address of endpoints, or an endpoint of a slice, with what it is combined with
    const uint32_t* words
    uint32_t ports          # the list of ports
    uint32_t first_port     # position of the first of them among all ports of the object
    uint32_t following      # the next address that names the same pod; 0: none
    uint8_t ready

cdef class TargetWriter:
    cdef Store store
    cdef Symbols symbols
    cdef Shapes shapes
    cdef uint32_t[LABEL_NAMES] names
    cdef uint32_t[KNOWN_WORDS] known
    cdef uint32_t[6] address_types  # of nodes, best first
    cdef list families              # prefixes of derived names
    cdef uint32_t* written          # names of the labels of the target being written, in the order of writing
    cdef uint32_t* given            # their values
    cdef uint32_t count, capacity
    cdef int profile
    cdef Batch batch
    cdef Combined* addresses        # of the object being rendered
    cdef uint32_t address_count, address_capacity
    cdef uint32_t* last_of          # by part: the last address of that part so far
    cdef char* scratch
    cdef size_t scratch_capacity

    cdef int put(self, int name, uint32_t value) except -1
    cdef int put_name(self, uint32_t name, uint32_t value) except -1
    cdef int put_metadata(self, int kind, const uint32_t* words) except -1
    cdef int put_pairs(self, int family, int present, const uint32_t* words, uint32_t where) except -1
    cdef uint32_t derived(self, int family, uint32_t key) except 0
    cdef int emit(self, uint64_t ident) except -1
    cdef char* room(self, size_t length) except NULL
    cdef uint32_t address(self, uint32_t host, uint32_t port) except 0
    cdef uint32_t lower(self, uint32_t id) except 0
    cdef Record* referee(self, int kind, uint32_t namespace, uint32_t name) except? NULL
    cdef int render_slot(self, uint32_t slot, uint32_t part) except -1
    cdef uint32_t fixed(self, str text) except 0
    cdef uint32_t joined(self, uint32_t name, uint32_t namespace) except 0
    cdef int node(self, const uint32_t* words) except -1
    cdef int pod(self, const uint32_t* words) except -1
    cdef int pod_containers(self, const uint32_t* words, uint32_t where, uint32_t statuses, bint init, uint32_t position) except -1
    cdef const uint32_t* status_of(self, const uint32_t* words, uint32_t statuses, uint32_t name) noexcept
    cdef int pod_labels(self, const uint32_t* words) except -1
    cdef int container_labels(self, const uint32_t* container, bint init) except -1
    cdef int container_port_labels(self, const uint32_t* port) except -1
    cdef int namespace_labels(self, uint32_t namespace) except -1
    cdef int service(self, const uint32_t* words) except -1
    cdef int service_labels(self, const uint32_t* words) except -1
    cdef int ingress(self, const uint32_t* words) except -1
    cdef bint has_tls(self, const uint32_t* words, uint32_t host) noexcept
    cdef int combined(self, Record* record, uint32_t slot, uint32_t part) except -1
    cdef int flatten(self, Record* record) except -1
    cdef int flatten_list(self, const uint32_t* words, uint32_t where, int size, uint32_t ports, uint32_t first_port, bint ready) except -1
    cdef int chain(self, uint32_t slot, uint32_t part) except -1
    cdef uint32_t part_of(self, uint32_t slot, uint32_t address) noexcept
    cdef int render_part(self, Record* record, uint32_t part, const uint32_t* service) except -1
    cdef int main_targets(self, Record* record, uint32_t at, const uint32_t* service, const uint32_t* pod) except -1
    cdef int endpoints_labels(self, Combined* address, const uint32_t* port) except -1
    cdef int slice_labels(self, const uint32_t* words, Combined* address, const uint32_t* port) except -1
    cdef int matching_container(self, const uint32_t* pod, uint32_t where, uint32_t number, bint init, bint every) except -1
    cdef int extra_targets(self, Record* record, uint32_t part, const uint32_t* service, const uint32_t* pod) except -1
    cdef int extra_containers(
        self, Record* record, uint32_t part, const uint32_t* service, const uint32_t* pod, uint32_t where, bint init, uint32_t position,
    ) except -1
    cdef bint is_covered(self, Record* record, uint32_t part, uint32_t number) noexcept
    cdef bint names_pod(self, const uint32_t* address) noexcept
    cdef uint32_t hosts_of(self, Record* record, uint32_t at) noexcept
