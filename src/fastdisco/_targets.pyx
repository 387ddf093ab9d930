"""Targets of what stands alone: nodes, pods, services and ingresses, and the labels that endpoints have of them.

Which label is made from what, and why, is in docs/labels.md; Dn is a number of docs/dialects.md.
"""
import cython

from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memchr, memcmp

from ._core cimport (
    ATTACH_CRONJOB, ATTACH_DEPLOYMENT, ATTACH_JOB, ATTACH_NAMESPACE, ATTACH_NODE, PROMETHEUS, Record, Store, Symbol,
)
from ._fields cimport *
from ._writer cimport *

cdef tuple ADDRESS_TYPES = ("InternalIP", "InternalDNS", "ExternalIP", "ExternalDNS", "LegacyHostIP", "Hostname")


@cython.no_gc_clear     # freeing uses its references
cdef class TargetWriter(LabelWriter):
    """Writes the targets of one object that stands alone."""

    def __cinit__(self, Store store not None):
        cdef int i
        for i in range(6):
            self.address_types[i] = self.fixed(ADDRESS_TYPES[i])

    def __dealloc__(self):
        cdef int i
        if self.symbols is not None:
            for i in range(6):
                self.symbols.drop(self.address_types[i])

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
                    host = pair[PAIR_VALUE] or EMPTY
                    break
            # D4: of an empty address the next type is tried, or it is taken
            if host > EMPTY or (host == EMPTY and self.profile & PROMETHEUS):
                break
        if host == ABSENT or (host == EMPTY and not self.profile & PROMETHEUS):
            return 0
        self.put(ADDRESS, self.address(host, words[NODE_KUBELET_PORT] or self.known[W_ZERO]))
        self.put(INSTANCE, words[META_NAME])
        self.put(NODE_NAME, words[META_NAME])
        self.put(L_NODE_PROVIDER_ID, words[NODE_PROVIDER_ID])
        self.put_metadata(NODE, words)
        if self.profile & PROMETHEUS:
            self.node_conditions(words)
        for i in range(count):
            pair = addresses + 1 + i * PAIR_SIZE
            for j in range(count):
                other = addresses + 1 + j * PAIR_SIZE
                if (j < i and (other[PAIR_KEY] or EMPTY) == (pair[PAIR_KEY] or EMPTY)) or self.is_hidden(pair, other):
                    break
            else:
                self.put_name(self.derived(F_NODE_ADDRESS, pair[PAIR_KEY] or EMPTY), pair[PAIR_VALUE])
        return self.emit(0)

    cdef bint is_hidden(self, const uint32_t* pair, const uint32_t* other) except -1:
        """D2: of types of addresses that become one label, the greatest is shown."""
        return self.profile & PROMETHEUS and (other[PAIR_KEY] or EMPTY) != (pair[PAIR_KEY] or EMPTY) \
            and self.derived(F_NODE_ADDRESS, other[PAIR_KEY] or EMPTY) == self.derived(F_NODE_ADDRESS, pair[PAIR_KEY] or EMPTY) \
            and self.shapes.compare(other[PAIR_KEY], pair[PAIR_KEY]) > 0

    cdef int node_conditions(self, const uint32_t* words) except -1:
        """D5: of a type that is listed twice the last one counts."""
        cdef uint32_t i
        cdef const uint32_t* pair
        if words[NODE_CONDITIONS]:
            conditions = words + (words[NODE_CONDITIONS] & ~LITERAL)
            for i in range(conditions[0] & ~LITERAL):
                pair = conditions + 1 + i * PAIR_SIZE
                self.put_name(self.derived(F_NODE_CONDITION, self.lower(pair[PAIR_KEY])), self.lower(pair[PAIR_VALUE]))
        return 0

    # ---- pod ----

    cdef int pod(self, const uint32_t* words) except -1:
        cdef bint prometheus = (self.profile & PROMETHEUS) != 0
        if words[POD_IP] <= EMPTY:
            return 0
        if not prometheus and (words[POD_PHASE] == self.known[W_SUCCEEDED] or words[POD_PHASE] == self.known[W_FAILED]):
            return 0        # D6
        if prometheus and self.profile & ATTACH_NODE and self.store.nodes_listed \
                and self.referee(NODE, ABSENT, words[POD_NODE_NAME]) == NULL:
            return 0        # D8
        self.pod_place(words)
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
            if status != NULL and status[STATUS_TERMINATED] and not self.profile & PROMETHEUS:
                continue    # D7
            self.container_labels(container, init)
            if status != NULL and status[STATUS_ID] > EMPTY:
                self.put(L_CONTAINER_ID, status[STATUS_ID])
            container_count = self.count
            ports = words + (container[CONTAINER_PORTS] & ~LITERAL)
            if not container[CONTAINER_PORTS] or not ports[0] & ~LITERAL:
                # D9: of IPv6 with or without brackets
                self.put(ADDRESS, words[POD_IP] if self.profile & PROMETHEUS else self.address(words[POD_IP], ABSENT))
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

    cdef int pod_place(self, const uint32_t* words) except -1:
        """The node and the namespace of a pod, and what is attached of them."""
        if self.profile & ATTACH_NODE:
            self.node_labels(words[POD_NODE_NAME])
        self.namespace_labels(words[META_NAMESPACE])
        return self.put(L_NAMESPACE, words[META_NAMESPACE])

    cdef int node_labels(self, uint32_t name) except -1:
        cdef Record* node = self.referee(NODE, ABSENT, name)
        if node != NULL or not self.profile & PROMETHEUS:
            self.put(NODE_NAME, name)       # D10: also of a node that is not known
        return 0 if node == NULL else self.put_metadata(NODE, node.words)

    cdef int pod_labels(self, const uint32_t* words) except -1:
        """What every target of a pod has, also where endpoints name the pod, beside where it is."""
        cdef uint32_t ready = words[POD_READY]
        self.put(POD_NAME, words[META_NAME])
        self.put(L_POD_IP, words[POD_IP])
        self.put(L_POD_READY, self.lower(ready) if ready else self.known[W_UNKNOWN])
        self.put(L_POD_PHASE, words[POD_PHASE])
        self.put(L_POD_NODE_NAME, words[POD_NODE_NAME])
        self.put(L_POD_HOST_IP, words[POD_HOST_IP])
        self.put(L_POD_UID, words[POD_UID])
        if words[POD_CONTROLLER_KIND] > EMPTY:
            self.put(L_POD_CONTROLLER_KIND, words[POD_CONTROLLER_KIND])
        if words[POD_CONTROLLER_NAME] > EMPTY:
            self.put(L_POD_CONTROLLER_NAME, words[POD_CONTROLLER_NAME])
            self.workload_labels(words)
        return self.put_metadata(POD, words)

    cdef int workload_labels(self, const uint32_t* words) except -1:
        """D11: what is behind the owner of a pod."""
        if words[POD_CONTROLLER_KIND] == self.known[W_REPLICASET]:
            if self.profile & ATTACH_DEPLOYMENT:
                return self.owner_label(words, REPLICASET, self.known[W_DEPLOYMENT], L_POD_DEPLOYMENT_NAME)
        elif words[POD_CONTROLLER_KIND] == self.known[W_JOB]:
            if self.profile & ATTACH_JOB:
                self.put(L_POD_JOB_NAME, words[POD_CONTROLLER_NAME])
            if self.profile & ATTACH_CRONJOB:
                return self.owner_label(words, JOB, self.known[W_CRONJOB], L_POD_CRONJOB_NAME)
        return 0

    cdef int owner_label(self, const uint32_t* words, int kind, uint32_t wanted, int label) except -1:
        """The name of the controller, of the wanted kind, of what controls the pod."""
        cdef Record* owner
        cdef uint32_t pod = self.store.find(POD, words[META_NAMESPACE], words[META_NAME])
        self.store.refer_once(pod, kind, words[META_NAMESPACE], words[POD_CONTROLLER_NAME], 0)
        owner = self.referee(kind, words[META_NAMESPACE], words[POD_CONTROLLER_NAME])
        if owner != NULL and owner.words[OWNED_CONTROLLER_KIND] == wanted:
            self.put(label, owner.words[OWNED_CONTROLLER_NAME])
        return 0

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
        self.service_labels(words, True)
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

    cdef int service_labels(self, const uint32_t* words, bint own) except -1:
        """What the targets of a service have: its own, or, of Prometheus fewer labels (D13), those of endpoints that belong to it."""
        self.put(L_SERVICE_NAME, words[META_NAME])
        if own or not self.profile & PROMETHEUS:
            self.put(L_NAMESPACE, words[META_NAMESPACE])
            self.put(L_SERVICE_TYPE, words[SERVICE_TYPE])
            if words[SERVICE_TYPE] == self.known[W_EXTERNAL_NAME]:
                self.put(L_SERVICE_EXTERNAL_NAME, words[SERVICE_EXTERNAL_NAME])
            else:
                self.put(L_SERVICE_CLUSTER_IP, words[SERVICE_CLUSTER_IP])
            if words[SERVICE_TYPE] == self.known[W_LOAD_BALANCER] and self.profile & PROMETHEUS:
                self.put(L_SERVICE_LOADBALANCER_IP, self.balancer_address(words))       # D12
            self.namespace_labels(words[META_NAMESPACE])
        return self.put_metadata(SERVICE, words)

    cdef uint32_t balancer_address(self, const uint32_t* words) except 0:
        """The addresses that a load balancer has, with commas between them; else the one that was asked for."""
        cdef uint32_t i
        cdef uint32_t where = words[SERVICE_BALANCER_INGRESS] & ~LITERAL
        cdef list found = []
        if where:
            for i in range(words[where] & ~LITERAL):
                if words[where + 1 + i] > EMPTY:
                    found.append(self.symbols.string(words[where + 1 + i]))
        return self.symbols.intern_str(",".join(found)) if found else words[SERVICE_BALANCER_IP] or EMPTY

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
            # D33: a rule whose `http` has no path
            if not rule[RULE_HTTP] if self.profile & PROMETHEUS else not rule[RULE_PATHS] or not paths[0] & ~LITERAL:
                self.put(L_INGRESS_PATH, self.known[W_SLASH])
                self.emit(<uint64_t> i << 16)
            elif rule[RULE_PATHS]:
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
                if other == self.known[W_STAR] and self.profile & PROMETHEUS:
                    if text.length == 0 or memchr(text.text, b".", text.length) == NULL:
                        return True     # D34
                    continue
                if pattern.length < 2 or memcmp(pattern.text, b"*.", 2) != 0 or text.length == 0:
                    continue
                dot = <const char*> memchr(text.text, b".", text.length)
                if dot != NULL and text.length - (dot - text.text) == pattern.length - 1 \
                        and memcmp(dot, pattern.text + 1, pattern.length - 1) == 0:
                    return True
        return False
