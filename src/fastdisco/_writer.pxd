"""How labels are written: label names, known words, and the fields of what writes them, with a line for each."""
from libc.stdint cimport uint32_t, uint64_t

from ._batch cimport Batch
from ._core cimport Record, Store, Symbols
from ._labels cimport Shapes

cdef enum:                  # label names that the roles write, by their place in NAMES
    ADDRESS, INSTANCE, L_NAMESPACE
    NODE_NAME, L_NODE_PROVIDER_ID
    POD_NAME, L_POD_IP, L_POD_READY, L_POD_PHASE, L_POD_NODE_NAME, L_POD_HOST_IP, L_POD_UID, L_POD_CONTROLLER_KIND, L_POD_CONTROLLER_NAME
    L_POD_DEPLOYMENT_NAME, L_POD_JOB_NAME, L_POD_CRONJOB_NAME
    L_CONTAINER_NAME, L_CONTAINER_IMAGE, L_CONTAINER_INIT, L_CONTAINER_ID
    L_CONTAINER_PORT_NAME, L_CONTAINER_PORT_NUMBER, L_CONTAINER_PORT_PROTOCOL
    L_SERVICE_NAME, L_SERVICE_PORT_NAME, L_SERVICE_PORT_NUMBER, L_SERVICE_PORT_PROTOCOL
    L_SERVICE_TYPE, L_SERVICE_CLUSTER_IP, L_SERVICE_EXTERNAL_NAME, L_SERVICE_LOADBALANCER_IP
    L_ENDPOINTS_NAME, L_ENDPOINT_READY, L_ENDPOINT_PORT_NAME, L_ENDPOINT_PORT_PROTOCOL
    L_ENDPOINT_TARGET_KIND, L_ENDPOINT_TARGET_NAME, L_ENDPOINT_NODE_NAME, L_ENDPOINT_HOSTNAME
    L_SLICE_NAME, L_SLICE_ADDRESS_TYPE, L_SLICE_READY, L_SLICE_SERVING, L_SLICE_TERMINATING
    L_SLICE_PORT_NAME, L_SLICE_PORT_PROTOCOL, L_SLICE_PORT, L_SLICE_PORT_APP_PROTOCOL
    L_SLICE_TARGET_KIND, L_SLICE_TARGET_NAME, L_SLICE_HOSTNAME, L_SLICE_NODE_NAME, L_SLICE_ZONE
    L_INGRESS_NAME, L_INGRESS_SCHEME, L_INGRESS_HOST, L_INGRESS_PATH, L_INGRESS_CLASS_NAME
    LABEL_NAMES

cdef enum:                  # values and texts that roles compare with or write, by their place in WORDS
    W_POD, W_NODE, W_REPLICASET, W_DEPLOYMENT, W_JOB, W_CRONJOB, W_ALWAYS, W_SUCCEEDED, W_FAILED, W_UNKNOWN, W_ZERO
    W_EXTERNAL_NAME, W_LOAD_BALANCER, W_PREFER_DUAL_STACK, W_REQUIRE_DUAL_STACK, W_HTTP, W_HTTPS, W_SLASH, W_STAR
    KNOWN_WORDS

cdef enum:                  # label families: derived from a key; 4 a kind (label, labelpresent, annotation, annotationpresent), and
    F_NODE_ADDRESS = 28
    F_TOPOLOGY, F_TOPOLOGY_PRESENT, F_NODE_CONDITION

cdef class LabelWriter:
    cdef Store store
    cdef Symbols symbols
    cdef Shapes shapes
    cdef uint32_t[LABEL_NAMES] names
    cdef uint32_t[KNOWN_WORDS] known
    cdef list families              # prefixes of derived names
    cdef uint32_t* written          # names of the labels of the target being written, in the order of writing
    cdef uint32_t* given            # their values
    cdef uint32_t count, capacity
    cdef uint32_t* left             # of these, what is left without empty labels
    cdef uint32_t* left_values
    cdef uint32_t left_count, left_capacity
    cdef int profile
    cdef Batch batch
    cdef char* scratch
    cdef size_t scratch_capacity

    cdef int put(self, int name, uint32_t value) except -1
    cdef int put_name(self, uint32_t name, uint32_t value) except -1
    cdef int put_metadata(self, int kind, const uint32_t* words) except -1
    cdef int put_pairs(self, int family, int present, const uint32_t* words, uint32_t where) except -1
    cdef uint32_t derived(self, int family, uint32_t key) except 0
    cdef int emit(self, uint64_t ident) except -1
    cdef int leave_empty(self) except -1
    cdef char* room(self, size_t length) except NULL
    cdef uint32_t address(self, uint32_t host, uint32_t port) except 0
    cdef uint32_t lower(self, uint32_t id) except 0
    cdef Record* referee(self, int kind, uint32_t namespace, uint32_t name) except? NULL
    cdef uint32_t fixed(self, str text) except 0
    cdef uint32_t joined(self, uint32_t name, uint32_t namespace) except 0
