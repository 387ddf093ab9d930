"""What is read of each kind of object, and where it lies in a record.

A record is an array of 32-bit words. It begins with one struct, the object's; a list is a word that says where in the record
its count and its elements, structs of fixed size, lie. A word is a symbol's id (0: absent or null), or has `LITERAL` set: a
count or the place of a list. So records of equal content are equal words.
"""
from libc.stdint cimport uint8_t, uint16_t, uint32_t

from ._bytes cimport key_words_t

cdef enum:
    ABSENT = 0
    EMPTY = 1           # the ids of the symbols that every `Symbols` has
    TRUE = 2
    FALSE = 3
    FIXED_SYMBOLS = 4
    LITERAL = 0x80000000u
    PENDING = 0xC0000000u   # while decoding: the number of a string that is not a symbol yet

cdef enum:  # Kind
    NODE, POD, SERVICE, ENDPOINTS, ENDPOINTSLICE, INGRESS, NAMESPACE, REPLICASET, JOB, KINDS

# of every kind
cdef enum:  # Meta
    META_NAMESPACE, META_NAME, META_LABELS, META_ANNOTATIONS, META_SIZE     # labels, annotations: lists of (key, value), keys ascending

cdef enum:  # Owned: what is owned and owns pods; only its own owner is read
    OWNED_CONTROLLER_KIND = META_SIZE
    OWNED_CONTROLLER_NAME
    OWNED_SIZE

cdef enum:  # Pair
    PAIR_KEY, PAIR_VALUE, PAIR_SIZE

cdef enum:  # Node
    NODE_PROVIDER_ID = META_SIZE
    NODE_KUBELET_PORT
    NODE_ADDRESSES      # (type, address)
    NODE_CONDITIONS     # (type, status)
    NODE_SIZE

cdef enum:  # Pod
    POD_UID = META_SIZE
    POD_CONTROLLER_KIND, POD_CONTROLLER_NAME    # of the first owner that is a controller
    POD_NODE_NAME, POD_PHASE, POD_IP, POD_HOST_IP
    POD_READY           # status of the first condition Ready
    POD_CONTAINERS, POD_INIT_CONTAINERS
    POD_STATUSES, POD_INIT_STATUSES
    POD_SIZE

cdef enum:  # Container
    CONTAINER_NAME, CONTAINER_IMAGE, CONTAINER_RESTART, CONTAINER_PORTS, CONTAINER_SIZE

cdef enum:  # Port; numbers are symbols of their decimal text
    PORT_NAME, PORT_NUMBER, PORT_PROTOCOL, PORT_APP_PROTOCOL, PORT_SIZE

cdef enum:  # ContainerStatus
    STATUS_NAME, STATUS_ID, STATUS_TERMINATED, STATUS_SIZE

cdef enum:  # Service
    SERVICE_TYPE = META_SIZE
    SERVICE_CLUSTER_IP, SERVICE_EXTERNAL_NAME, SERVICE_PORTS
    SERVICE_BALANCER_IP, SERVICE_BALANCER_INGRESS, SERVICE_FAMILY_POLICY, SERVICE_FAMILIES
    SERVICE_SIZE

cdef enum:  # Endpoints
    ENDPOINTS_SUBSETS = META_SIZE
    ENDPOINTS_SIZE

cdef enum:  # Subset
    SUBSET_ADDRESSES, SUBSET_NOT_READY, SUBSET_PORTS, SUBSET_SIZE

cdef enum:  # Address
    ADDRESS_TARGET      # TRUE where targetRef is an object
    ADDRESS_TARGET_KIND, ADDRESS_TARGET_NAME, ADDRESS_TARGET_NAMESPACE
    ADDRESS_IP, ADDRESS_HOSTNAME, ADDRESS_NODE_NAME, ADDRESS_SIZE

cdef enum:  # Slice
    SLICE_ADDRESS_TYPE = META_SIZE
    SLICE_PORTS, SLICE_ENDPOINTS
    SLICE_SIZE

cdef enum:  # Endpoint; begins like an Address
    ENDPOINT_TARGET
    ENDPOINT_TARGET_KIND, ENDPOINT_TARGET_NAME, ENDPOINT_TARGET_NAMESPACE
    ENDPOINT_ADDRESSES, ENDPOINT_HOSTNAME, ENDPOINT_NODE_NAME
    ENDPOINT_READY, ENDPOINT_SERVING, ENDPOINT_TERMINATING
    ENDPOINT_ZONE, ENDPOINT_TOPOLOGY, ENDPOINT_DEPRECATED_TOPOLOGY
    ENDPOINT_SIZE

cdef enum:  # Ingress
    INGRESS_CLASS_NAME = META_SIZE
    INGRESS_RULES, INGRESS_TLS
    INGRESS_SIZE

cdef enum:  # Rule
    RULE_HOST, RULE_HTTP, RULE_PATHS, RULE_SIZE

# How a value is read
cdef enum:  # Action
    TEXT                # a string
    NUMBER              # an integer, kept as its decimal text
    FLAG                # true or false
    OBJECT              # an object whose fields lie in the same struct; its own word, if it has one, says that it is there
    ITEMS               # an array of objects: a list of structs
    TEXTS               # an array of strings: a list of structs of one word
    PAIRS               # an object of strings: a list of (key, value), sorted by key, the last of equal keys
    FIRST               # an array of objects: the struct of the first that `where` equals `equals`, copied
    VERSION             # a string that is no part of the record: the resource version

cdef struct Field:
    const char* key
    uint16_t length     # of the key
    uint8_t action
    uint8_t word        # in the struct; NO_WORD: none
    key_words_t words   # the key's ends, by which it is compared
    Schema* inner       # of OBJECT (same struct), ITEMS and FIRST

cdef enum:
    NO_WORD = 255
    MOST_FIELDS = 14
    KEY_LENGTHS = 32    # no key that is read is longer

cdef struct Schema:      # one JSON object as it is read
    Field fields[MOST_FIELDS]
    int count
    uint8_t[KEY_LENGTHS] first  # by length of a key: 1 + the first field whose key has it; 0: none
    int size            # words of the struct that it fills
    uint8_t where       # FIRST: the word that decides,
    const char* equals  # the text that it must have (NULL: must be TRUE),
    uint8_t source      # the first word that is copied
    uint8_t copied      # and how many

cdef Schema* schema_of(int kind) noexcept nogil
cdef Schema* schema_of_metadata() noexcept nogil
cdef Schema* schema_of_event() noexcept nogil
cdef str kind_name(int kind)
cpdef int kind_number(str kind) except -1
