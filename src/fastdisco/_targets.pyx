"""Targets: one function per role turns an object into label sets, as VictoriaMetrics' discovery writes them.

    slot, part -> role -> labels as written -> layout -> Batch of targets

Which label is made from what, and why, is in docs/labels.md.
"""
import cython

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memchr, memcmp, memcpy

from ._core cimport ALL_PARTS, ATTACH_NAMESPACE, ATTACH_NODE, Record, Store, Symbol
from ._fields cimport *
from ._labels cimport Layout, shapes_of

cdef list NAMES = (
    "__address__ instance M_namespace M_node_name M_node_provider_id "
    "M_pod_name M_pod_ip M_pod_ready M_pod_phase M_pod_node_name M_pod_host_ip M_pod_uid M_pod_controller_kind M_pod_controller_name "
    "M_pod_container_name M_pod_container_image M_pod_container_init M_pod_container_id "
    "M_pod_container_port_name M_pod_container_port_number M_pod_container_port_protocol "
    "M_service_name M_service_port_name M_service_port_number M_service_port_protocol "
    "M_service_type M_service_cluster_ip M_service_external_name "
    "M_endpoints_name M_endpoint_ready M_endpoint_port_name M_endpoint_port_protocol "
    "M_endpoint_address_target_kind M_endpoint_address_target_name M_endpoint_node_name M_endpoint_hostname "
    "M_endpointslice_name M_endpointslice_address_type M_endpointslice_endpoint_conditions_ready "
    "M_endpointslice_endpoint_conditions_serving M_endpointslice_endpoint_conditions_terminating "
    "M_endpointslice_port_name M_endpointslice_port_protocol M_endpointslice_port M_endpointslice_port_app_protocol "
    "M_endpointslice_address_target_kind M_endpointslice_address_target_name M_endpointslice_endpoint_hostname "
    "M_endpointslice_endpoint_node_name "
    "M_ingress_name M_ingress_scheme M_ingress_host M_ingress_path M_ingress_class_name"
).split()

cdef tuple WORDS = ("Pod", "Always", "Succeeded", "Failed", "unknown", "0", "ExternalName", "http", "https", "/")

# a type whose first address is empty falls through to the next one
cdef tuple ADDRESS_TYPES = ("InternalIP", "InternalDNS", "ExternalIP", "ExternalDNS", "LegacyHostIP", "Hostname")

cdef enum:
    PART_BITS = 24
    EXTRA = 0x8000          # in a target's position: a container port that no endpoint port covers


@cython.no_gc_clear     # freeing uses its references
cdef class TargetWriter:
    """Writes the targets of one object of a store into `batch`, with what `profile` attaches: bit 0 node, bit 1 namespace metadata."""

    def __cinit__(self, Store store not None):
        self.store = store
        self.symbols = store.symbols
        self.shapes = shapes_of(store.symbols)
        cdef int i
        for i in range(LABEL_NAMES):
            self.names[i] = self.fixed(NAMES[i].replace("M_", "__meta_kubernetes_", 1) if NAMES[i].startswith("M_") else NAMES[i])
        for i in range(KNOWN_WORDS):
            self.known[i] = self.fixed(WORDS[i])
        for i in range(6):
            self.address_types[i] = self.fixed(ADDRESS_TYPES[i])
        self.families = [
            f"__meta_kubernetes_{kind_name(i)}_{family}_".encode()
            for i in range(KINDS) for family in ("label", "labelpresent", "annotation", "annotationpresent")
        ]
        self.families += [
            b"__meta_kubernetes_node_address_",
            b"__meta_kubernetes_endpointslice_endpoint_topology_",
            b"__meta_kubernetes_endpointslice_endpoint_topology_present_",
        ]

    def __dealloc__(self):
        cdef int i
        if self.symbols is not None:
            for i in range(LABEL_NAMES):
                self.symbols.drop(self.names[i])
            for i in range(KNOWN_WORDS):
                self.symbols.drop(self.known[i])
            for i in range(6):
                self.symbols.drop(self.address_types[i])
        free(self.written)
        free(self.given)
        free(self.addresses)
        free(self.last_of)
        free(self.scratch)

    cdef uint32_t fixed(self, str text) except 0:
        """A symbol that the renderer owns."""
        cdef uint32_t id = self.symbols.intern_str(text)
        self.symbols.hold(id)
        return id

    cdef int render_slot(self, uint32_t slot, uint32_t part) except -1:
        cdef Record* record = self.store.slot(slot).record
        self.store.rendered_of[record.kind] += 1
        if record.kind == ENDPOINTS or record.kind == ENDPOINTSLICE:
            return self.combined(record, slot, part)
        self.batch.begin(<uint64_t> slot << PART_BITS, record.kind, self.profile)
        self.count = 0
        if record.kind == POD:
            return self.pod(record.words)
        if record.kind == NODE:
            return self.node(record.words)
        if record.kind == SERVICE:
            return self.service(record.words)
        if record.kind == INGRESS:
            return self.ingress(record.words)
        return 0

    # ---- writing labels ----

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
        cdef Layout* layout = self.shapes.layout(self.written, self.count)
        return self.batch.add(layout.shape, self.given, layout.words + layout.count, ident)

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

    # ---- node ----

    cdef int node(self, const uint32_t* words) except -1:
        cdef uint32_t host = ABSENT
        cdef uint32_t i, j
        cdef const uint32_t* pair
        cdef const uint32_t* other
        if not words[NODE_ADDRESSES]:
            return 0
        cdef const uint32_t* addresses = words + (words[NODE_ADDRESSES] & ~LITERAL)
        cdef uint32_t count = addresses[0] & ~LITERAL
        for i in range(6):
            for j in range(count):
                pair = addresses + 1 + j * PAIR_SIZE
                if pair[PAIR_KEY] == self.address_types[i]:
                    host = pair[PAIR_VALUE]
                    break
            if host > EMPTY:
                break
        if host <= EMPTY:
            return 0
        self.put(ADDRESS, self.address(host, words[NODE_KUBELET_PORT] or self.known[W_ZERO]))
        self.put(INSTANCE, words[META_NAME])
        self.put(NODE_NAME, words[META_NAME])
        self.put(L_NODE_PROVIDER_ID, words[NODE_PROVIDER_ID])
        self.put_metadata(NODE, words)
        for i in range(count):
            pair = addresses + 1 + i * PAIR_SIZE
            for j in range(i):
                other = addresses + 1 + j * PAIR_SIZE
                if (other[PAIR_KEY] or EMPTY) == (pair[PAIR_KEY] or EMPTY):
                    break
            else:
                self.put_name(self.derived(F_NODE_ADDRESS, pair[PAIR_KEY] or EMPTY), pair[PAIR_VALUE])
        return self.emit(0)

    # ---- pod ----

    cdef int pod(self, const uint32_t* words) except -1:
        if words[POD_IP] <= EMPTY or words[POD_PHASE] == self.known[W_SUCCEEDED] or words[POD_PHASE] == self.known[W_FAILED]:
            return 0
        self.pod_labels(words)
        cdef int position = self.pod_containers(words, words[POD_CONTAINERS], words[POD_STATUSES], False, 0)
        self.pod_containers(words, words[POD_INIT_CONTAINERS], words[POD_INIT_STATUSES], True, <uint32_t> position)
        return 0

    cdef int pod_containers(self, const uint32_t* words, uint32_t where, uint32_t statuses, bint init, uint32_t position) except -1:
        """A target per declared port, or one for a container without; returns the position after the last container."""
        cdef uint32_t i, j
        cdef uint32_t pod_count = self.count
        cdef uint32_t container_count
        cdef const uint32_t* container
        cdef const uint32_t* ports
        cdef const uint32_t* port
        cdef const uint32_t* status
        if not where:
            return <int> position
        where &= ~LITERAL
        cdef uint32_t count = words[where] & ~LITERAL
        for i in range(count):
            container = words + where + 1 + i * CONTAINER_SIZE
            status = self.status_of(words, statuses, container[CONTAINER_NAME])
            if status != NULL and status[STATUS_TERMINATED]:
                continue
            self.container_labels(container, init)
            if status != NULL and status[STATUS_ID] > EMPTY:
                self.put(L_CONTAINER_ID, status[STATUS_ID])
            container_count = self.count
            ports = words + (container[CONTAINER_PORTS] & ~LITERAL)
            if not container[CONTAINER_PORTS] or not ports[0] & ~LITERAL:
                self.put(ADDRESS, self.address(words[POD_IP], ABSENT))
                self.emit(<uint64_t> (position + i) << 16)
            else:
                for j in range(ports[0] & ~LITERAL):
                    port = ports + 1 + j * PORT_SIZE
                    self.put(ADDRESS, self.address(words[POD_IP], port[PORT_NUMBER] or self.known[W_ZERO]))
                    self.container_port_labels(port)
                    self.emit(<uint64_t> (position + i) << 16 | j)
                    self.count = container_count
            self.count = pod_count
        return <int> (position + count)

    cdef const uint32_t* status_of(self, const uint32_t* words, uint32_t statuses, uint32_t name) noexcept:
        """The first status of that container, or NULL."""
        cdef uint32_t i
        cdef const uint32_t* status
        if statuses:
            statuses &= ~LITERAL
            for i in range(words[statuses] & ~LITERAL):
                status = words + statuses + 1 + i * STATUS_SIZE
                if (status[STATUS_NAME] or EMPTY) == (name or EMPTY):
                    return status
        return NULL

    cdef int pod_labels(self, const uint32_t* words) except -1:
        """What every target of a pod has, also where endpoints name the pod."""
        cdef Record* node
        cdef uint32_t ready = words[POD_READY]
        if self.profile & ATTACH_NODE:
            # the name is written also for a node that is not known
            self.put(NODE_NAME, words[POD_NODE_NAME])
            node = self.referee(NODE, ABSENT, words[POD_NODE_NAME])
            if node != NULL:
                self.put_metadata(NODE, node.words)
        self.namespace_labels(words[META_NAMESPACE])
        self.put(POD_NAME, words[META_NAME])
        self.put(L_POD_IP, words[POD_IP])
        self.put(L_POD_READY, self.lower(ready) if ready else self.known[W_UNKNOWN])
        self.put(L_POD_PHASE, words[POD_PHASE])
        self.put(L_POD_NODE_NAME, words[POD_NODE_NAME])
        self.put(L_POD_HOST_IP, words[POD_HOST_IP])
        self.put(L_POD_UID, words[POD_UID])
        self.put(L_NAMESPACE, words[META_NAMESPACE])
        if words[POD_CONTROLLER_KIND] > EMPTY:
            self.put(L_POD_CONTROLLER_KIND, words[POD_CONTROLLER_KIND])
        if words[POD_CONTROLLER_NAME] > EMPTY:
            self.put(L_POD_CONTROLLER_NAME, words[POD_CONTROLLER_NAME])
        return self.put_metadata(POD, words)

    cdef int container_labels(self, const uint32_t* container, bint init) except -1:
        self.put(L_CONTAINER_NAME, container[CONTAINER_NAME])
        self.put(L_CONTAINER_IMAGE, container[CONTAINER_IMAGE])
        return self.put(L_CONTAINER_INIT, TRUE if init else FALSE)

    cdef int container_port_labels(self, const uint32_t* port) except -1:
        self.put(L_CONTAINER_PORT_NAME, port[PORT_NAME])
        self.put(L_CONTAINER_PORT_NUMBER, port[PORT_NUMBER] or self.known[W_ZERO])
        return self.put(L_CONTAINER_PORT_PROTOCOL, port[PORT_PROTOCOL])

    cdef int namespace_labels(self, uint32_t namespace) except -1:
        cdef Record* record
        if self.profile & ATTACH_NAMESPACE:
            record = self.referee(NAMESPACE, ABSENT, namespace)
            if record != NULL:
                self.put_metadata(NAMESPACE, record.words)
        return 0

    # ---- service ----

    cdef int service(self, const uint32_t* words) except -1:
        cdef uint32_t i
        cdef const uint32_t* ports
        cdef const uint32_t* port
        cdef uint32_t host, count
        if not words[SERVICE_PORTS]:
            return 0
        self.service_labels(words)
        count = self.count
        host = self.joined(words[META_NAME], words[META_NAMESPACE])
        ports = words + (words[SERVICE_PORTS] & ~LITERAL)
        for i in range(ports[0] & ~LITERAL):
            port = ports + 1 + i * PORT_SIZE
            self.put(ADDRESS, self.address(host, port[PORT_NUMBER] or self.known[W_ZERO]))
            self.put(L_SERVICE_PORT_NAME, port[PORT_NAME])
            self.put(L_SERVICE_PORT_NUMBER, port[PORT_NUMBER] or self.known[W_ZERO])
            self.put(L_SERVICE_PORT_PROTOCOL, port[PORT_PROTOCOL])
            self.emit(i)
            self.count = count
        return 0

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

    cdef int service_labels(self, const uint32_t* words) except -1:
        """What every target of a service has, also where endpoints belong to it."""
        self.put(L_NAMESPACE, words[META_NAMESPACE])
        self.put(L_SERVICE_NAME, words[META_NAME])
        self.put(L_SERVICE_TYPE, words[SERVICE_TYPE])
        if words[SERVICE_TYPE] == self.known[W_EXTERNAL_NAME]:
            self.put(L_SERVICE_EXTERNAL_NAME, words[SERVICE_EXTERNAL_NAME])
        else:
            self.put(L_SERVICE_CLUSTER_IP, words[SERVICE_CLUSTER_IP])
        self.namespace_labels(words[META_NAMESPACE])
        return self.put_metadata(SERVICE, words)

    # ---- ingress ----

    cdef int ingress(self, const uint32_t* words) except -1:
        cdef uint32_t i, j, count, rule_count, host, path
        cdef const uint32_t* rules
        cdef const uint32_t* rule
        cdef const uint32_t* paths
        if not words[INGRESS_RULES]:
            return 0
        self.put(L_NAMESPACE, words[META_NAMESPACE])
        self.put(L_INGRESS_NAME, words[META_NAME])
        self.put(L_INGRESS_CLASS_NAME, words[INGRESS_CLASS_NAME])
        self.namespace_labels(words[META_NAMESPACE])
        self.put_metadata(INGRESS, words)
        count = self.count
        rules = words + (words[INGRESS_RULES] & ~LITERAL)
        for i in range(rules[0] & ~LITERAL):
            rule = rules + 1 + i * RULE_SIZE
            host = rule[RULE_HOST] or EMPTY
            self.put(ADDRESS, host)
            self.put(L_INGRESS_HOST, host)
            self.put(L_INGRESS_SCHEME, self.known[W_HTTPS] if self.has_tls(words, host) else self.known[W_HTTP])
            rule_count = self.count
            paths = words + (rule[RULE_PATHS] & ~LITERAL)
            if not rule[RULE_PATHS] or not paths[0] & ~LITERAL:
                self.put(L_INGRESS_PATH, self.known[W_SLASH])
                self.emit(<uint64_t> i << 16)
            else:
                for j in range(paths[0] & ~LITERAL):
                    path = paths[1 + j]
                    self.put(L_INGRESS_PATH, path if path > EMPTY else self.known[W_SLASH])
                    self.emit(<uint64_t> i << 16 | j)
                    self.count = rule_count
            self.count = count
        return 0

    cdef bint has_tls(self, const uint32_t* words, uint32_t host) noexcept:
        """Whether a host of `tls` is this one, or *.DOMAIN and this one has one label before the same domain."""
        cdef uint32_t i, j, other
        cdef const uint32_t* tls
        cdef const uint32_t* hosts
        cdef Symbol* pattern
        cdef Symbol* text = self.symbols.at(host)
        cdef const char* dot
        if not words[INGRESS_TLS]:
            return False
        tls = words + (words[INGRESS_TLS] & ~LITERAL)
        for i in range(tls[0] & ~LITERAL):
            if not tls[1 + i]:
                continue
            hosts = words + (tls[1 + i] & ~LITERAL)
            for j in range(hosts[0] & ~LITERAL):
                other = hosts[1 + j]
                if other == host:
                    return True
                pattern = self.symbols.at(other)
                if pattern.length < 2 or memcmp(pattern.text, b"*.", 2) != 0 or text.length == 0:
                    continue
                dot = <const char*> memchr(text.text, b".", text.length)
                if dot != NULL and text.length - (dot - text.text) == pattern.length - 1 \
                        and memcmp(dot, pattern.text + 1, pattern.length - 1) == 0:
                    return True
        return False

    # ---- endpoints and endpointslice: each address with each port, and container ports that are not covered ----

    cdef int combined(self, Record* record, uint32_t slot, uint32_t part) except -1:
        cdef Record* found
        cdef const uint32_t* service = NULL
        cdef uint32_t name = record.words[META_NAME]
        cdef uint32_t i
        if record.kind == ENDPOINTSLICE:
            name = self.store.service_of_slice(record.words)
        found = self.referee(SERVICE, record.words[META_NAMESPACE], name)
        if found != NULL:
            service = found.words
        self.flatten(record)
        self.chain(slot, part)
        if part != ALL_PARTS:
            if part < self.address_count:
                self.batch.begin(<uint64_t> slot << PART_BITS | part, record.kind, self.profile)
                self.render_part(record, part, service)
            return 0
        for i in range(self.address_count):
            if self.part_of(slot, i) == i:
                self.batch.begin(<uint64_t> slot << PART_BITS | i, record.kind, self.profile)
                self.render_part(record, i, service)
        return 0

    cdef int flatten(self, Record* record) except -1:
        """All addresses of an object, numbered as `Store.link` numbers them."""
        cdef const uint32_t* words = record.words
        cdef const uint32_t* subset
        cdef uint32_t i
        cdef uint32_t ports = 0
        self.address_count = 0
        if record.kind == ENDPOINTSLICE:
            return self.flatten_list(words, words[SLICE_ENDPOINTS], ENDPOINT_SIZE, words[SLICE_PORTS], 0, False)
        if not words[ENDPOINTS_SUBSETS]:
            return 0
        cdef const uint32_t* subsets = words + (words[ENDPOINTS_SUBSETS] & ~LITERAL)
        for i in range(subsets[0] & ~LITERAL):
            subset = subsets + 1 + i * SUBSET_SIZE
            self.flatten_list(words, subset[SUBSET_ADDRESSES], ADDRESS_SIZE, subset[SUBSET_PORTS], ports, True)
            self.flatten_list(words, subset[SUBSET_NOT_READY], ADDRESS_SIZE, subset[SUBSET_PORTS], ports, False)
            if subset[SUBSET_PORTS]:
                ports += words[subset[SUBSET_PORTS] & ~LITERAL] & ~LITERAL
        return 0

    cdef int flatten_list(self, const uint32_t* words, uint32_t where, int size, uint32_t ports, uint32_t first_port, bint ready) except -1:
        cdef uint32_t i
        cdef Combined* grown
        cdef uint32_t* last
        if not where:
            return 0
        where &= ~LITERAL
        cdef uint32_t count = words[where] & ~LITERAL
        if self.address_count + count > self.address_capacity:
            self.address_capacity = (self.address_count + count) * 2
            grown = <Combined*> realloc(self.addresses, self.address_capacity * sizeof(Combined))
            if grown == NULL:
                raise MemoryError
            self.addresses = grown
            last = <uint32_t*> realloc(self.last_of, self.address_capacity * sizeof(uint32_t))
            if last == NULL:
                raise MemoryError
            self.last_of = last
        for i in range(count):
            self.addresses[self.address_count].words = words + where + 1 + i * size
            self.addresses[self.address_count].ports = ports
            self.addresses[self.address_count].first_port = first_port
            self.addresses[self.address_count].following = 0
            self.addresses[self.address_count].ready = ready
            self.address_count += 1
        return 0

    cdef int chain(self, uint32_t slot, uint32_t part) except -1:
        """Links the addresses that name the same pod: those of one part, or all."""
        cdef uint32_t i, first
        cdef const uint32_t* wanted
        cdef const uint32_t* words
        if part != ALL_PARTS:
            if part >= self.address_count:
                return 0
            self.last_of[part] = part
            wanted = self.addresses[part].words
            if not self.names_pod(wanted):
                return 0
            for i in range(part + 1, self.address_count):
                words = self.addresses[i].words
                if words[ADDRESS_TARGET_NAME] == wanted[ADDRESS_TARGET_NAME] \
                        and (words[ADDRESS_TARGET_NAMESPACE] or EMPTY) == (wanted[ADDRESS_TARGET_NAMESPACE] or EMPTY) \
                        and words[ADDRESS_TARGET_KIND] == wanted[ADDRESS_TARGET_KIND]:
                    self.addresses[self.last_of[part]].following = i
                    self.last_of[part] = i
            return 0
        for i in range(self.address_count):
            first = self.part_of(slot, i)
            if first != i:
                self.addresses[self.last_of[first]].following = i
            self.last_of[first] = i
        return 0

    cdef bint names_pod(self, const uint32_t* address) noexcept:
        return address[ADDRESS_TARGET_NAME] > EMPTY and address[ADDRESS_TARGET_KIND] == self.known[W_POD]

    cdef uint32_t part_of(self, uint32_t slot, uint32_t at) noexcept:
        """The first address of the object that names the same pod; the address itself if it names none."""
        cdef const uint32_t* address = self.addresses[at].words
        cdef uint32_t namespace, pod, edge
        if self.names_pod(address):
            namespace = address[ADDRESS_TARGET_NAMESPACE]
            pod = self.store.find(POD, namespace if namespace > EMPTY else ABSENT, address[ADDRESS_TARGET_NAME])
            edge = self.store.slot(pod).ins if pod else 0
            while edge:
                if self.store.edge(edge).referrer == slot:
                    return self.store.edge(edge).part
                edge = self.store.edge(edge).next_in
        return at

    cdef int render_part(self, Record* record, uint32_t part, const uint32_t* service) except -1:
        """Main targets of all addresses of a part, and the extra targets of their pod."""
        cdef const uint32_t* words = self.addresses[part].words
        cdef const uint32_t* pod = NULL
        cdef Record* found
        cdef uint32_t at = part
        cdef bint seen = False
        if self.names_pod(words):
            found = self.referee(POD, words[ADDRESS_TARGET_NAMESPACE], words[ADDRESS_TARGET_NAME])
            if found != NULL:
                pod = found.words
        while True:
            seen = self.main_targets(record, at, service, pod) or seen
            at = self.addresses[at].following
            if at == 0:
                break
        # a pod that is only listed without ports is not seen
        if pod != NULL and seen:
            self.extra_targets(record, part, service, pod)
        return 0

    cdef int main_targets(self, Record* record, uint32_t at, const uint32_t* service, const uint32_t* pod) except -1:
        """Targets of one address, or of each address of one endpoint; whether it was combined with any port."""
        cdef Combined* address = &self.addresses[at]
        cdef const uint32_t* ports
        cdef const uint32_t* port
        cdef const uint32_t* hosts
        cdef bint is_slice = record.kind == ENDPOINTSLICE
        cdef uint32_t i, j, host_count, number
        cdef uint32_t* host = <uint32_t*> &address.words[ADDRESS_IP]
        if not address.ports:
            return 0
        ports = record.words + (address.ports & ~LITERAL)
        host_count = 1
        if is_slice:
            if not address.words[ENDPOINT_ADDRESSES]:
                return 0
            hosts = record.words + (address.words[ENDPOINT_ADDRESSES] & ~LITERAL)
            host_count = hosts[0] & ~LITERAL
            host = <uint32_t*> hosts + 1
        for i in range(ports[0] & ~LITERAL):
            port = ports + 1 + i * PORT_SIZE
            number = port[PORT_NUMBER] or self.known[W_ZERO]
            for j in range(host_count):
                self.count = 0
                self.put(ADDRESS, self.address(host[j], number))
                self.put(L_NAMESPACE, record.words[META_NAMESPACE])
                if is_slice:
                    self.slice_labels(record.words, address, port)
                else:
                    self.put(L_ENDPOINTS_NAME, record.words[META_NAME])
                    self.endpoints_labels(address, port)
                if service != NULL:
                    self.service_labels(service)
                self.put_metadata(record.kind, record.words)
                if pod != NULL:
                    self.pod_labels(pod)
                    self.matching_container(pod, pod[POD_CONTAINERS], number, False, True)
                    self.matching_container(pod, pod[POD_INIT_CONTAINERS], number, True, is_slice)
                self.emit(<uint64_t> at << 32 | <uint64_t> (address.first_port + i) << 16 | j)
        return host_count > 0 and ports[0] & ~LITERAL > 0

    cdef int endpoints_labels(self, Combined* address, const uint32_t* port) except -1:
        self.put(L_ENDPOINT_READY, TRUE if address.ready else FALSE)
        self.put(L_ENDPOINT_PORT_NAME, port[PORT_NAME])
        self.put(L_ENDPOINT_PORT_PROTOCOL, port[PORT_PROTOCOL])
        if address.words[ADDRESS_TARGET_KIND] > EMPTY:
            self.put(L_ENDPOINT_TARGET_KIND, address.words[ADDRESS_TARGET_KIND])
            self.put(L_ENDPOINT_TARGET_NAME, address.words[ADDRESS_TARGET_NAME])
        if address.words[ADDRESS_NODE_NAME] > EMPTY:
            self.put(L_ENDPOINT_NODE_NAME, address.words[ADDRESS_NODE_NAME])
        if address.words[ADDRESS_HOSTNAME] > EMPTY:
            self.put(L_ENDPOINT_HOSTNAME, address.words[ADDRESS_HOSTNAME])
        return 0

    cdef int slice_labels(self, const uint32_t* words, Combined* address, const uint32_t* port) except -1:
        cdef const uint32_t* endpoint = address.words
        self.put(L_SLICE_NAME, words[META_NAME])
        self.put(L_SLICE_ADDRESS_TYPE, words[SLICE_ADDRESS_TYPE])
        # a condition that is not known reads as false
        self.put(L_SLICE_READY, endpoint[ENDPOINT_READY] or FALSE)
        self.put(L_SLICE_SERVING, endpoint[ENDPOINT_SERVING] or FALSE)
        self.put(L_SLICE_TERMINATING, endpoint[ENDPOINT_TERMINATING] or FALSE)
        self.put(L_SLICE_PORT_NAME, port[PORT_NAME])
        self.put(L_SLICE_PORT_PROTOCOL, port[PORT_PROTOCOL])
        self.put(L_SLICE_PORT, port[PORT_NUMBER] or self.known[W_ZERO])
        if port[PORT_APP_PROTOCOL] > EMPTY:
            self.put(L_SLICE_PORT_APP_PROTOCOL, port[PORT_APP_PROTOCOL])
        if endpoint[ENDPOINT_TARGET_KIND] > EMPTY:
            self.put(L_SLICE_TARGET_KIND, endpoint[ENDPOINT_TARGET_KIND])
            self.put(L_SLICE_TARGET_NAME, endpoint[ENDPOINT_TARGET_NAME])
        if endpoint[ENDPOINT_HOSTNAME] > EMPTY:
            self.put(L_SLICE_HOSTNAME, endpoint[ENDPOINT_HOSTNAME])
        if endpoint[ENDPOINT_NODE_NAME] > EMPTY:
            self.put(L_SLICE_NODE_NAME, endpoint[ENDPOINT_NODE_NAME])
        return self.put_pairs(F_TOPOLOGY, F_TOPOLOGY_PRESENT, words, endpoint[ENDPOINT_TOPOLOGY])

    cdef int matching_container(self, const uint32_t* pod, uint32_t where, uint32_t number, bint init, bint every) except -1:
        """Labels of each container that declares this port number, by its first such port; the last one wins.

        Of init containers only sidecars count, unless `every` one does.
        """
        cdef uint32_t i, j
        cdef const uint32_t* container
        cdef const uint32_t* ports
        if not where:
            return 0
        where &= ~LITERAL
        for i in range(pod[where] & ~LITERAL):
            container = pod + where + 1 + i * CONTAINER_SIZE
            if not container[CONTAINER_PORTS] or (init and not every and container[CONTAINER_RESTART] != self.known[W_ALWAYS]):
                continue
            ports = pod + (container[CONTAINER_PORTS] & ~LITERAL)
            for j in range(ports[0] & ~LITERAL):
                if ((ports + 1 + j * PORT_SIZE)[PORT_NUMBER] or self.known[W_ZERO]) == number:
                    self.container_labels(container, init)
                    self.container_port_labels(ports + 1 + j * PORT_SIZE)
                    break
        return 0

    cdef int extra_targets(self, Record* record, uint32_t part, const uint32_t* service, const uint32_t* pod) except -1:
        """Declared container ports of the pod that none of its endpoint ports covers; of init containers only sidecars."""
        cdef int position = self.extra_containers(record, part, service, pod, pod[POD_CONTAINERS], False, 0)
        return self.extra_containers(record, part, service, pod, pod[POD_INIT_CONTAINERS], True, <uint32_t> position)

    cdef int extra_containers(
        self, Record* record, uint32_t part, const uint32_t* service, const uint32_t* pod, uint32_t where, bint init, uint32_t position,
    ) except -1:
        cdef uint32_t i, j, number
        cdef const uint32_t* container
        cdef const uint32_t* ports
        cdef const uint32_t* target = self.addresses[part].words
        if not where:
            return <int> position
        where &= ~LITERAL
        cdef uint32_t count = pod[where] & ~LITERAL
        for i in range(count):
            container = pod + where + 1 + i * CONTAINER_SIZE
            if not container[CONTAINER_PORTS] or (init and container[CONTAINER_RESTART] != self.known[W_ALWAYS]):
                continue
            ports = pod + (container[CONTAINER_PORTS] & ~LITERAL)
            for j in range(ports[0] & ~LITERAL):
                number = (ports + 1 + j * PORT_SIZE)[PORT_NUMBER] or self.known[W_ZERO]
                if self.is_covered(record, part, number):
                    continue
                self.count = 0
                self.put(ADDRESS, self.address(pod[POD_IP], number))
                self.pod_labels(pod)
                self.container_labels(container, init)
                self.container_port_labels(ports + 1 + j * PORT_SIZE)
                if record.kind == ENDPOINTS:
                    self.put(L_ENDPOINTS_NAME, record.words[META_NAME])
                    self.put(L_ENDPOINT_TARGET_KIND, self.known[W_POD])
                    self.put(L_ENDPOINT_TARGET_NAME, target[ADDRESS_TARGET_NAME])
                else:
                    self.put(L_SLICE_NAME, record.words[META_NAME])
                    self.put(L_SLICE_TARGET_KIND, self.known[W_POD])
                    self.put(L_SLICE_TARGET_NAME, target[ADDRESS_TARGET_NAME])
                    self.put(L_SLICE_ADDRESS_TYPE, record.words[SLICE_ADDRESS_TYPE])
                self.put_metadata(record.kind, record.words)
                if service != NULL:
                    self.service_labels(service)
                self.emit(<uint64_t> part << 32 | <uint64_t> (EXTRA | position + i) << 16 | j)
        return <int> (position + count)

    cdef bint is_covered(self, Record* record, uint32_t part, uint32_t number) noexcept:
        """Whether some address of the part is combined with that port number."""
        cdef uint32_t at = part
        cdef uint32_t i
        cdef const uint32_t* ports
        while True:
            if self.addresses[at].ports and (record.kind == ENDPOINTS or self.hosts_of(record, at) > 0):
                ports = record.words + (self.addresses[at].ports & ~LITERAL)
                for i in range(ports[0] & ~LITERAL):
                    if ((ports + 1 + i * PORT_SIZE)[PORT_NUMBER] or self.known[W_ZERO]) == number:
                        return True
            at = self.addresses[at].following
            if at == 0:
                return False

    cdef uint32_t hosts_of(self, Record* record, uint32_t at) noexcept:
        """Number of addresses of an endpoint of a slice."""
        cdef uint32_t where = self.addresses[at].words[ENDPOINT_ADDRESSES]
        return record.words[where & ~LITERAL] & ~LITERAL if where else 0
