"""How labels are written: names in the order of a role, values beside them, and at the end a target.

    names and values as written -> layout -> a target of the Batch
"""
import cython

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memchr, memcpy

from ._core cimport PROMETHEUS, Record, Store, Symbol
from ._fields cimport (
    ABSENT, EMPTY, LITERAL, META_ANNOTATIONS, META_LABELS, NAMESPACE, PAIR_KEY, PAIR_SIZE, PAIR_VALUE, TRUE, kind_name,
)
from ._labels cimport Layout, shapes_of

cdef list NAMES = (
    "__address__ instance M_namespace M_node_name M_node_provider_id "
    "M_pod_name M_pod_ip M_pod_ready M_pod_phase M_pod_node_name M_pod_host_ip M_pod_uid M_pod_controller_kind M_pod_controller_name "
    "M_pod_deployment_name M_pod_job_name M_pod_cronjob_name "
    "M_pod_container_name M_pod_container_image M_pod_container_init M_pod_container_id "
    "M_pod_container_port_name M_pod_container_port_number M_pod_container_port_protocol "
    "M_service_name M_service_port_name M_service_port_number M_service_port_protocol "
    "M_service_type M_service_cluster_ip M_service_external_name M_service_loadbalancer_ip "
    "M_endpoints_name M_endpoint_ready M_endpoint_port_name M_endpoint_port_protocol "
    "M_endpoint_address_target_kind M_endpoint_address_target_name M_endpoint_node_name M_endpoint_hostname "
    "M_endpointslice_name M_endpointslice_address_type M_endpointslice_endpoint_conditions_ready "
    "M_endpointslice_endpoint_conditions_serving M_endpointslice_endpoint_conditions_terminating "
    "M_endpointslice_port_name M_endpointslice_port_protocol M_endpointslice_port M_endpointslice_port_app_protocol "
    "M_endpointslice_address_target_kind M_endpointslice_address_target_name M_endpointslice_endpoint_hostname "
    "M_endpointslice_endpoint_node_name M_endpointslice_endpoint_zone "
    "M_ingress_name M_ingress_scheme M_ingress_host M_ingress_path M_ingress_class_name"
).split()

cdef tuple WORDS = (
    "Pod", "Node", "ReplicaSet", "Deployment", "Job", "CronJob", "Always", "Succeeded", "Failed", "unknown", "0",
    "ExternalName", "LoadBalancer", "PreferDualStack", "RequireDualStack", "http", "https", "/", "*",
)


@cython.no_gc_clear     # freeing uses its references
cdef class LabelWriter:
    """Writes the labels of targets of a store's objects into `batch`. `profile` says what is attached, and whose dialect it is."""

    def __cinit__(self, Store store not None):
        self.store = store
        self.symbols = store.symbols
        self.shapes = shapes_of(store.symbols)
        cdef int i
        for i in range(LABEL_NAMES):
            self.names[i] = self.fixed(NAMES[i].replace("M_", "__meta_kubernetes_", 1) if NAMES[i].startswith("M_") else NAMES[i])
        for i in range(KNOWN_WORDS):
            self.known[i] = self.fixed(WORDS[i])
        self.families = [
            f"__meta_kubernetes_{kind_name(i)}_{family}_".encode()
            for i in range(NAMESPACE + 1) for family in ("label", "labelpresent", "annotation", "annotationpresent")
        ]
        self.families += [
            b"__meta_kubernetes_node_address_",
            b"__meta_kubernetes_endpointslice_endpoint_topology_",
            b"__meta_kubernetes_endpointslice_endpoint_topology_present_",
            b"__meta_kubernetes_node_condition_",
        ]

    def __dealloc__(self):
        cdef int i
        if self.symbols is not None:
            for i in range(LABEL_NAMES):
                self.symbols.drop(self.names[i])
            for i in range(KNOWN_WORDS):
                self.symbols.drop(self.known[i])
        free(self.written)
        free(self.given)
        free(self.left)
        free(self.left_values)
        free(self.scratch)

    cdef uint32_t fixed(self, str text) except 0:
        """A symbol that the renderer owns."""
        cdef uint32_t id = self.symbols.intern_str(text)
        self.symbols.hold(id)
        return id

    cdef int put(self, int name, uint32_t value) except -1:
        return self.put_name(self.names[name], value)

    cdef int put_name(self, uint32_t name, uint32_t value) except -1:
        cdef uint32_t* grown
        if self.count == self.capacity:
            self.capacity = self.capacity * 2 if self.capacity else 128
            grown = <uint32_t*> realloc(self.written, self.capacity * sizeof(uint32_t))
            if grown == NULL:
                raise MemoryError
            self.written = grown
            grown = <uint32_t*> realloc(self.given, self.capacity * sizeof(uint32_t))
            if grown == NULL:
                raise MemoryError
            self.given = grown
        self.written[self.count] = name
        self.given[self.count] = value if value else EMPTY
        self.count += 1
        return 0

    cdef int put_metadata(self, int kind, const uint32_t* words) except -1:
        """The four families of an object's labels and annotations."""
        self.put_pairs(4 * kind, 4 * kind + 1, words, words[META_LABELS])
        return self.put_pairs(4 * kind + 2, 4 * kind + 3, words, words[META_ANNOTATIONS])

    cdef int put_pairs(self, int family, int present, const uint32_t* words, uint32_t where) except -1:
        cdef uint32_t i
        cdef const uint32_t* pair
        if where:
            where &= ~LITERAL
            for i in range(words[where] & ~LITERAL):
                pair = words + where + 1 + i * PAIR_SIZE
                self.put_name(self.derived(family, pair[PAIR_KEY]), pair[PAIR_VALUE])
                self.put_name(self.derived(present, pair[PAIR_KEY]), TRUE)
        return 0

    cdef uint32_t derived(self, int family, uint32_t key) except 0:
        """The label name of a family and a key: each character outside [a-zA-Z0-9_] becomes one underscore."""
        cdef uint32_t* names = self.symbols.derived_names(key)
        cdef bytes prefix
        cdef size_t length, i
        cdef Symbol* symbol
        cdef char* text
        cdef uint8_t byte
        if names[family]:
            return names[family]
        prefix = self.families[family]
        length = len(prefix)
        symbol = self.symbols.at(key)
        text = self.room(length + symbol.length)
        memcpy(text, <const char*> prefix, length)
        for i in range(symbol.length):
            byte = <uint8_t> symbol.text[i]
            if 0x80 <= byte < 0xC0:
                continue        # of a character whose first byte has given its underscore
            if not (b"a" <= byte <= b"z" or b"A" <= byte <= b"Z" or b"0" <= byte <= b"9"):
                byte = b"_"
            text[length] = <char> byte
            length += 1
        cdef uint32_t made = self.symbols.intern(text, length)
        self.symbols.hold(made)
        names[family] = made
        return made

    cdef int emit(self, uint64_t ident) except -1:
        """The labels written so far are a target."""
        cdef Layout* layout
        if self.profile & PROMETHEUS:
            self.leave_empty()
            layout = self.shapes.layout(self.left, self.left_count)
            return self.batch.add(layout.shape, self.left_values, layout.words + layout.count, ident)
        layout = self.shapes.layout(self.written, self.count)
        return self.batch.add(layout.shape, self.given, layout.words + layout.count, ident)

    cdef int leave_empty(self) except -1:
        """D1: an empty label is none, and takes away what its name had before."""
        cdef uint32_t i, j, kept
        cdef uint32_t* grown
        if self.left_capacity < self.capacity:
            grown = <uint32_t*> realloc(self.left, self.capacity * sizeof(uint32_t))
            if grown == NULL:
                raise MemoryError
            self.left = grown
            grown = <uint32_t*> realloc(self.left_values, self.capacity * sizeof(uint32_t))
            if grown == NULL:
                raise MemoryError
            self.left_values = grown
            self.left_capacity = self.capacity
        self.left_count = 0
        for i in range(self.count):
            if self.given[i] != EMPTY:
                self.left[self.left_count] = self.written[i]
                self.left_values[self.left_count] = self.given[i]
                self.left_count += 1
                continue
            kept = 0
            for j in range(self.left_count):
                if self.left[j] != self.written[i]:
                    self.left[kept] = self.left[j]
                    self.left_values[kept] = self.left_values[j]
                    kept += 1
            self.left_count = kept
        return 0

    cdef char* room(self, size_t length) except NULL:
        cdef char* grown
        if length >= self.scratch_capacity:
            self.scratch_capacity = length * 2 + 64
            grown = <char*> realloc(self.scratch, self.scratch_capacity)
            if grown == NULL:
                raise MemoryError
            self.scratch = grown
        return self.scratch

    cdef uint32_t address(self, uint32_t host, uint32_t port) except 0:
        """host:port, or the host alone if there is no port; IPv6 in brackets."""
        cdef Symbol* h = self.symbols.at(host)
        cdef Symbol* p = self.symbols.at(port)
        cdef bint bracket = h.length > 0 and memchr(h.text, b":", h.length) != NULL
        if port == ABSENT and not bracket:
            return host if host else EMPTY
        cdef char* text = self.room(h.length + p.length + 3)
        cdef size_t length = 0
        if bracket:
            text[0] = b"["
            length = 1
        memcpy(text + length, h.text, h.length)
        length += h.length
        if bracket:
            text[length] = b"]"
            length += 1
        if port != ABSENT:
            text[length] = b":"
            memcpy(text + length + 1, p.text, p.length)
            length += 1 + p.length
        return self.symbols.intern(text, length)

    cdef uint32_t lower(self, uint32_t id) except 0:
        return self.symbols.intern_str(self.symbols.string(id).lower())

    cdef Record* referee(self, int kind, uint32_t namespace, uint32_t name) except? NULL:
        """The object of that name; NULL, and reported as missing, if it is not here."""
        cdef uint32_t slot
        if name <= EMPTY:
            return NULL
        slot = self.store.find(kind, namespace if namespace > EMPTY else ABSENT, name)
        if slot == 0:
            return NULL
        if self.store.slot(slot).record == NULL:
            self.store.report_missing(slot)
        return self.store.slot(slot).record

    cdef uint32_t joined(self, uint32_t name, uint32_t namespace) except 0:
        """<name>.<namespace>.svc"""
        cdef Symbol* first = self.symbols.at(name)
        cdef Symbol* second = self.symbols.at(namespace)
        cdef char* text = self.room(first.length + second.length + 5)
        memcpy(text, first.text, first.length)
        text[first.length] = b"."
        memcpy(text + first.length + 1, second.text, second.length)
        memcpy(text + first.length + 1 + second.length, b".svc", 4)
        return self.symbols.intern(text, first.length + second.length + 5)
