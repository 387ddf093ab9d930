"""What is read of each kind of object: the JSON paths, as tables for the decoders.

    kind -> schema (the JSON object) -> fields (key, how it is read, where it goes)
"""
from libc.stdint cimport uint8_t, uint16_t

from ._bytes cimport key_words

KIND_NAMES = ("node", "pod", "service", "endpoints", "endpointslice", "ingress", "namespace", "replicaset", "job")

cdef Schema[KINDS] roots
cdef Schema[64] inner_schemas
cdef int inner_count = 0
cdef Schema* metadata_root = NULL
cdef Schema* event_root = NULL
# keys are Python bytes that must outlive the tables
cdef list kept_keys = []


cdef Schema* schema_of(int kind) noexcept nogil:
    return &roots[kind]


cdef Schema* schema_of_metadata() noexcept nogil:
    """An object of which only name, namespace and version are read: for deleted objects, bookmarks and objects that are not valid."""
    return metadata_root


cdef Schema* schema_of_event() noexcept nogil:
    """A line of a watch: only the numbers of its keys matter, 0 for `type` and 1 for `object`."""
    return event_root


cdef str kind_name(int kind):
    return KIND_NAMES[kind]


cpdef int kind_number(str kind) except -1:
    """Position of a kind's name in `KIND_NAMES`; ValueError for any other."""
    if kind not in KIND_NAMES:
        raise ValueError(f"no kind of object is called {kind!r}")
    return KIND_NAMES.index(kind)


cdef const char* keep(str text) except NULL:
    cdef bytes key = text.encode()
    kept_keys.append(key)
    return key


cdef Schema* schema(int size) except NULL:
    global inner_count
    if inner_count == 64:
        raise MemoryError("more schemas than the table holds")
    cdef Schema* made = &inner_schemas[inner_count]
    inner_count += 1
    made.size = size
    return made


cdef int add(Schema* to, str key, int action, int word=NO_WORD, Schema* inner=NULL) except -1:
    if to.count == MOST_FIELDS:
        raise MemoryError("more fields than a schema holds")
    cdef Field* field = &to.fields[to.count]
    to.count += 1
    field.key = keep(key)
    field.length = <uint16_t> len(key.encode())
    field.words = key_words(field.key, field.length)
    if field.length >= KEY_LENGTHS:
        raise MemoryError("a key longer than the table holds")
    if to.first[field.length] == 0:
        to.first[field.length] = <uint8_t> to.count
    field.action = action
    field.word = <uint8_t> word
    field.inner = inner
    return 0


cdef Schema* inside(Schema* outer, str key, int word=NO_WORD) except NULL:
    """An object whose fields lie in the struct of the object around it."""
    cdef Schema* made = schema(outer.size)
    add(outer, key, OBJECT, word, made)
    return made


cdef Schema* items(Schema* outer, str key, int word, int size) except NULL:
    cdef Schema* made = schema(size)
    add(outer, key, ITEMS, word, made)
    return made


cdef Schema* metadata(Schema* outer) except NULL:
    cdef Schema* made = inside(outer, "metadata")
    add(made, "name", TEXT, META_NAME)
    add(made, "namespace", TEXT, META_NAMESPACE)
    add(made, "labels", PAIRS, META_LABELS)
    add(made, "annotations", PAIRS, META_ANNOTATIONS)
    add(made, "resourceVersion", VERSION)
    return made


cdef Schema* ports(Schema* outer, int word, str number) except NULL:
    cdef Schema* made = items(outer, "ports", word, PORT_SIZE)
    add(made, "name", TEXT, PORT_NAME)
    add(made, number, NUMBER, PORT_NUMBER)
    add(made, "protocol", TEXT, PORT_PROTOCOL)
    return made


cdef int target_ref(Schema* outer) except -1:
    cdef Schema* made = inside(outer, "targetRef", ADDRESS_TARGET)
    add(made, "kind", TEXT, ADDRESS_TARGET_KIND)
    add(made, "name", TEXT, ADDRESS_TARGET_NAME)
    add(made, "namespace", TEXT, ADDRESS_TARGET_NAMESPACE)
    return 0


cdef int node_fields() except -1:
    cdef Schema* node = &roots[NODE]
    cdef Schema* inner
    metadata(node)
    add(inside(node, "spec"), "providerID", TEXT, NODE_PROVIDER_ID)
    cdef Schema* status = inside(node, "status")
    inner = items(status, "addresses", NODE_ADDRESSES, PAIR_SIZE)
    add(inner, "type", TEXT, PAIR_KEY)
    add(inner, "address", TEXT, PAIR_VALUE)
    inner = items(status, "conditions", NODE_CONDITIONS, PAIR_SIZE)
    add(inner, "type", TEXT, PAIR_KEY)
    add(inner, "status", TEXT, PAIR_VALUE)
    add(inside(inside(status, "daemonEndpoints"), "kubeletEndpoint"), "Port", NUMBER, NODE_KUBELET_PORT)
    return 0


cdef int containers(Schema* spec, str key, int word) except -1:
    cdef Schema* made = items(spec, key, word, CONTAINER_SIZE)
    add(made, "name", TEXT, CONTAINER_NAME)
    add(made, "image", TEXT, CONTAINER_IMAGE)
    if word == POD_INIT_CONTAINERS:
        add(made, "restartPolicy", TEXT, CONTAINER_RESTART)
    ports(made, CONTAINER_PORTS, "containerPort")
    return 0


cdef int statuses(Schema* status, str key, int word) except -1:
    cdef Schema* made = items(status, key, word, STATUS_SIZE)
    add(made, "name", TEXT, STATUS_NAME)
    add(made, "containerID", TEXT, STATUS_ID)
    inside(inside(made, "state"), "terminated", STATUS_TERMINATED)
    return 0


cdef int controller(Schema* meta, int word) except -1:
    """Kind and name of the first owner that is a controller."""
    # struct of an owner: controller, kind, name
    cdef Schema* owner = schema(3)
    add(owner, "controller", FLAG, 0)
    add(owner, "kind", TEXT, 1)
    add(owner, "name", TEXT, 2)
    owner.where, owner.equals, owner.source, owner.copied = 0, NULL, 1, 2
    return add(meta, "ownerReferences", FIRST, word, owner)


cdef int pod_fields() except -1:
    cdef Schema* pod = &roots[POD]
    cdef Schema* meta = metadata(pod)
    add(meta, "uid", TEXT, POD_UID)
    controller(meta, POD_CONTROLLER_KIND)
    cdef Schema* spec = inside(pod, "spec")
    add(spec, "nodeName", TEXT, POD_NODE_NAME)
    containers(spec, "containers", POD_CONTAINERS)
    containers(spec, "initContainers", POD_INIT_CONTAINERS)
    cdef Schema* status = inside(pod, "status")
    add(status, "phase", TEXT, POD_PHASE)
    add(status, "podIP", TEXT, POD_IP)
    add(status, "hostIP", TEXT, POD_HOST_IP)
    # struct of a condition: type, status
    cdef Schema* condition = schema(2)
    add(condition, "type", TEXT, 0)
    add(condition, "status", TEXT, 1)
    condition.where, condition.equals, condition.source, condition.copied = 0, keep("Ready"), 1, 1
    add(status, "conditions", FIRST, POD_READY, condition)
    statuses(status, "containerStatuses", POD_STATUSES)
    statuses(status, "initContainerStatuses", POD_INIT_STATUSES)
    return 0


cdef int service_fields() except -1:
    cdef Schema* service = &roots[SERVICE]
    metadata(service)
    cdef Schema* spec = inside(service, "spec")
    add(spec, "type", TEXT, SERVICE_TYPE)
    add(spec, "clusterIP", TEXT, SERVICE_CLUSTER_IP)
    add(spec, "externalName", TEXT, SERVICE_EXTERNAL_NAME)
    add(spec, "loadBalancerIP", TEXT, SERVICE_BALANCER_IP)
    add(spec, "ipFamilyPolicy", TEXT, SERVICE_FAMILY_POLICY)
    add(spec, "ipFamilies", TEXTS, SERVICE_FAMILIES)
    ports(spec, SERVICE_PORTS, "port")
    cdef Schema* balancer = inside(inside(service, "status"), "loadBalancer")
    add(items(balancer, "ingress", SERVICE_BALANCER_INGRESS, 1), "ip", TEXT, 0)
    return 0


cdef int addresses(Schema* subset, str key, int word) except -1:
    cdef Schema* made = items(subset, key, word, ADDRESS_SIZE)
    add(made, "ip", TEXT, ADDRESS_IP)
    add(made, "hostname", TEXT, ADDRESS_HOSTNAME)
    add(made, "nodeName", TEXT, ADDRESS_NODE_NAME)
    target_ref(made)
    return 0


cdef int endpoints_fields() except -1:
    metadata(&roots[ENDPOINTS])
    cdef Schema* subset = items(&roots[ENDPOINTS], "subsets", ENDPOINTS_SUBSETS, SUBSET_SIZE)
    addresses(subset, "addresses", SUBSET_ADDRESSES)
    addresses(subset, "notReadyAddresses", SUBSET_NOT_READY)
    ports(subset, SUBSET_PORTS, "port")
    return 0


cdef int endpointslice_fields() except -1:
    cdef Schema* root = &roots[ENDPOINTSLICE]
    metadata(root)
    add(root, "addressType", TEXT, SLICE_ADDRESS_TYPE)
    add(ports(root, SLICE_PORTS, "port"), "appProtocol", TEXT, PORT_APP_PROTOCOL)
    cdef Schema* endpoint = items(root, "endpoints", SLICE_ENDPOINTS, ENDPOINT_SIZE)
    add(endpoint, "addresses", TEXTS, ENDPOINT_ADDRESSES)
    add(endpoint, "hostname", TEXT, ENDPOINT_HOSTNAME)
    add(endpoint, "nodeName", TEXT, ENDPOINT_NODE_NAME)
    add(endpoint, "zone", TEXT, ENDPOINT_ZONE)
    add(endpoint, "topology", PAIRS, ENDPOINT_TOPOLOGY)
    add(endpoint, "deprecatedTopology", PAIRS, ENDPOINT_DEPRECATED_TOPOLOGY)
    cdef Schema* conditions = inside(endpoint, "conditions")
    add(conditions, "ready", FLAG, ENDPOINT_READY)
    add(conditions, "serving", FLAG, ENDPOINT_SERVING)
    add(conditions, "terminating", FLAG, ENDPOINT_TERMINATING)
    target_ref(endpoint)
    return 0


cdef int ingress_fields() except -1:
    metadata(&roots[INGRESS])
    cdef Schema* spec = inside(&roots[INGRESS], "spec")
    add(spec, "ingressClassName", TEXT, INGRESS_CLASS_NAME)
    cdef Schema* rule = items(spec, "rules", INGRESS_RULES, RULE_SIZE)
    add(rule, "host", TEXT, RULE_HOST)
    add(items(inside(rule, "http", RULE_HTTP), "paths", RULE_PATHS, 1), "path", TEXT, 0)
    add(items(spec, "tls", INGRESS_TLS, 1), "hosts", TEXTS, 0)
    return 0


cdef int owned_fields(int kind) except -1:
    """Neither labels nor annotations are read of what owns pods."""
    cdef Schema* meta = inside(&roots[kind], "metadata")
    add(meta, "name", TEXT, META_NAME)
    add(meta, "namespace", TEXT, META_NAMESPACE)
    add(meta, "resourceVersion", VERSION)
    return controller(meta, OWNED_CONTROLLER_KIND)


cdef int all_fields() except -1:
    global metadata_root, event_root
    cdef int[KINDS] sizes = [
        NODE_SIZE, POD_SIZE, SERVICE_SIZE, ENDPOINTS_SIZE, SLICE_SIZE, INGRESS_SIZE, META_SIZE, OWNED_SIZE, OWNED_SIZE,
    ]
    cdef int kind
    for kind in range(KINDS):
        roots[kind].size = sizes[kind]
    node_fields()
    pod_fields()
    service_fields()
    endpoints_fields()
    endpointslice_fields()
    ingress_fields()
    metadata(&roots[NAMESPACE])
    owned_fields(REPLICASET)
    owned_fields(JOB)
    metadata_root = schema(META_SIZE)
    cdef Schema* made = inside(metadata_root, "metadata")
    add(made, "name", TEXT, META_NAME)
    add(made, "namespace", TEXT, META_NAMESPACE)
    add(made, "resourceVersion", VERSION)
    event_root = schema(0)
    add(event_root, "type", TEXT)
    add(event_root, "object", OBJECT)
    return 0


all_fields()
