"""Targets of endpoints and slices: each address with each port, and container ports of their pods that no port covers.

    slot, part -> role -> labels as written -> Batch of targets

Which label is made from what, and why, is in docs/labels.md; Dn is a number of docs/dialects.md.
"""
import cython

from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport free, realloc

from ._batch cimport PART_BITS
from ._core cimport ALL_PARTS, ATTACH_NODE, PROMETHEUS, Record
from ._fields cimport *
from ._targets cimport TargetWriter
from ._writer cimport *

cdef enum:
    EXTRA = 0x8000          # in a target's position: a container port that no endpoint port covers


@cython.no_gc_clear     # freeing uses its references
cdef class EndpointsWriter(TargetWriter):
    """Writes the targets of any one object, or of one part of endpoints."""

    def __dealloc__(self):
        free(self.addresses)
        free(self.last_of)

    cdef int render_slot(self, uint32_t slot, uint32_t part) except -1:
        cdef Record* record = self.store.slot(slot).record
        self.store.rendered_of[record.kind] += part != ALL_PARTS or self.first_part == 0
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
            if self.profile & PROMETHEUS and record.kind == ENDPOINTSLICE and self.is_secondary(record.words, service):
                return 0
        self.slot = slot
        if self.flat != slot:
            self.flatten(slot, record)
            self.chain(slot, part)
        elif not self.chained:
            self.chain(slot, ALL_PARTS)     # asked for a second time, and perhaps many times more
        if part != ALL_PARTS:
            if part < self.address_count:
                self.batch.begin(<uint64_t> slot << PART_BITS | part, record.kind, self.profile)
                self.render_part(record, part, service)
            return 0
        for i in range(self.first_part, min(self.end_part, self.address_count)):
            if self.part_of(slot, i) == i:
                self.batch.begin(<uint64_t> slot << PART_BITS | i, record.kind, self.profile)
                self.render_part(record, i, service)
        return 0

    cdef bint is_secondary(self, const uint32_t* words, const uint32_t* service) noexcept:
        """D30: whether it is a slice of a dual-stack service with addresses that are not of its first family."""
        cdef uint32_t where = service[SERVICE_FAMILIES] & ~LITERAL
        cdef uint32_t policy = service[SERVICE_FAMILY_POLICY]
        if policy != self.known[W_PREFER_DUAL_STACK] and policy != self.known[W_REQUIRE_DUAL_STACK]:
            return False
        if not where or not service[where] & ~LITERAL:
            return False
        return (words[SLICE_ADDRESS_TYPE] or EMPTY) != (service[where + 1] or EMPTY)

    cdef int flatten(self, uint32_t slot, Record* record) except -1:
        """All addresses of an object, numbered as `Store.link` numbers them."""
        cdef const uint32_t* words = record.words
        cdef const uint32_t* subset
        cdef uint32_t i
        cdef uint32_t ports = 0
        self.address_count = 0
        self.flat = slot
        self.chained = False
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
        self.chained = True
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
        if self.names_pod(words) and not self.is_apart(record.words[META_NAMESPACE], words[ADDRESS_TARGET_NAMESPACE]):
            found = self.referee(POD, words[ADDRESS_TARGET_NAMESPACE], words[ADDRESS_TARGET_NAME])
            if found != NULL:
                pod = found.words
        while True:
            seen = self.main_targets(record, at, part, service, pod) or seen
            at = self.addresses[at].following
            if at == 0:
                break
        # a pod that is only listed without ports is not seen; D20: of one without an address there may be none
        if pod != NULL and seen and not (pod[POD_IP] <= EMPTY and self.profile & PROMETHEUS):
            self.extra_targets(record, part, service, pod)
        return 0

    cdef bint is_apart(self, uint32_t namespace, uint32_t other) noexcept:
        """D45: where namespaces are named, Prometheus discovers each for itself."""
        return self.apart and self.profile & PROMETHEUS and namespace != other

    cdef int main_targets(
        self, Record* record, uint32_t at, uint32_t part, const uint32_t* service, const uint32_t* pod,
    ) except -1:
        """Targets of one address, or of each address of one endpoint; whether it was combined with any port."""
        cdef Combined* address = &self.addresses[at]
        cdef const uint32_t* ports
        cdef const uint32_t* port
        cdef const uint32_t* hosts
        cdef bint is_slice = record.kind == ENDPOINTSLICE
        cdef bint prometheus = (self.profile & PROMETHEUS) != 0
        cdef bint matched
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
            number = self.number_of(port, is_slice)
            for j in range(host_count):
                self.count = 0
                # D26: a port that is null is none
                self.put(ADDRESS, host[j] if number == ABSENT else self.address(host[j], number))
                self.put(L_NAMESPACE, record.words[META_NAMESPACE])
                if is_slice:
                    self.slice_labels(record.words, address, port)
                else:
                    self.put(L_ENDPOINTS_NAME, record.words[META_NAME])
                    self.endpoints_labels(address, port)
                if service != NULL:
                    self.service_labels(service, False)
                self.put_metadata(record.kind, record.words)
                if prometheus:
                    self.namespace_labels(record.words[META_NAMESPACE])     # D23
                    if self.profile & ATTACH_NODE:
                        self.address_node(address.words, is_slice, part, pod)
                if pod != NULL:
                    if not prometheus:      # D22, D23, D45
                        self.pod_place(pod)
                    self.pod_labels(pod)
                    if number != ABSENT:
                        matched = self.matching_container(pod, pod[POD_CONTAINERS], number, False, True)
                        # D14, D15
                        if self.matching_container(pod, pod[POD_INIT_CONTAINERS], number, True, is_slice or prometheus):
                            matched = True
                        if matched and prometheus and not is_slice:
                            self.put(L_CONTAINER_PORT_PROTOCOL, port[PORT_PROTOCOL])    # D17
                self.emit(<uint64_t> at << 32 | <uint64_t> (address.first_port + i) << 16 | j)
        return host_count > 0 and ports[0] & ~LITERAL > 0

    cdef uint32_t number_of(self, const uint32_t* port, bint is_slice) noexcept:
        """Of a port that is null: none (D26), or 0."""
        return port[PORT_NUMBER] if port[PORT_NUMBER] or (is_slice and self.profile & PROMETHEUS) else self.known[W_ZERO]

    cdef int address_node(self, const uint32_t* address, bint is_slice, uint32_t part, const uint32_t* pod) except -1:
        """D21, D22: the node that an address names, itself or by its target; there is no second try."""
        cdef uint32_t name = address[ENDPOINT_NODE_NAME] if is_slice else address[ADDRESS_NODE_NAME]
        if address[ADDRESS_TARGET_KIND] == self.known[W_NODE] and (is_slice or name == ABSENT):
            name = address[ADDRESS_TARGET_NAME]
        if name <= EMPTY:
            return 0
        if pod == NULL or pod[POD_NODE_NAME] != name:   # else the edges over the pod are enough
            self.store.refer_once(self.slot, NODE, ABSENT, name, part)
        return self.node_labels(name)

    cdef bint shows_target(self, const uint32_t* address) noexcept:
        """D31: whether there is a target, or one of some kind."""
        return address[ADDRESS_TARGET] if self.profile & PROMETHEUS else address[ADDRESS_TARGET_KIND] > EMPTY

    cdef int endpoints_labels(self, Combined* address, const uint32_t* port) except -1:
        self.put(L_ENDPOINT_READY, TRUE if address.ready else FALSE)
        self.put(L_ENDPOINT_PORT_NAME, port[PORT_NAME])
        self.put(L_ENDPOINT_PORT_PROTOCOL, port[PORT_PROTOCOL])
        if self.shows_target(address.words):
            self.put(L_ENDPOINT_TARGET_KIND, address.words[ADDRESS_TARGET_KIND])
            self.put(L_ENDPOINT_TARGET_NAME, address.words[ADDRESS_TARGET_NAME])
        if address.words[ADDRESS_NODE_NAME] > EMPTY:
            self.put(L_ENDPOINT_NODE_NAME, address.words[ADDRESS_NODE_NAME])
        if address.words[ADDRESS_HOSTNAME] > EMPTY:
            self.put(L_ENDPOINT_HOSTNAME, address.words[ADDRESS_HOSTNAME])
        return 0

    cdef int slice_labels(self, const uint32_t* words, Combined* address, const uint32_t* port) except -1:
        cdef const uint32_t* endpoint = address.words
        cdef uint32_t unknown = EMPTY if self.profile & PROMETHEUS else FALSE       # D25
        self.put(L_SLICE_NAME, words[META_NAME])
        self.put(L_SLICE_ADDRESS_TYPE, words[SLICE_ADDRESS_TYPE])
        self.put(L_SLICE_READY, endpoint[ENDPOINT_READY] or unknown)
        self.put(L_SLICE_SERVING, endpoint[ENDPOINT_SERVING] or unknown)
        self.put(L_SLICE_TERMINATING, endpoint[ENDPOINT_TERMINATING] or unknown)
        self.put(L_SLICE_PORT_NAME, port[PORT_NAME])
        self.put(L_SLICE_PORT_PROTOCOL, port[PORT_PROTOCOL])
        self.put(L_SLICE_PORT, self.number_of(port, True))
        if port[PORT_APP_PROTOCOL] > EMPTY:
            self.put(L_SLICE_PORT_APP_PROTOCOL, port[PORT_APP_PROTOCOL])
        if self.shows_target(endpoint):
            self.put(L_SLICE_TARGET_KIND, endpoint[ENDPOINT_TARGET_KIND])
            self.put(L_SLICE_TARGET_NAME, endpoint[ENDPOINT_TARGET_NAME])
        if endpoint[ENDPOINT_HOSTNAME] > EMPTY:
            self.put(L_SLICE_HOSTNAME, endpoint[ENDPOINT_HOSTNAME])
        if endpoint[ENDPOINT_NODE_NAME] > EMPTY:
            self.put(L_SLICE_NODE_NAME, endpoint[ENDPOINT_NODE_NAME])
        if self.profile & PROMETHEUS:
            self.put(L_SLICE_ZONE, endpoint[ENDPOINT_ZONE])     # D28
            return self.put_pairs(F_TOPOLOGY, F_TOPOLOGY_PRESENT, words, endpoint[ENDPOINT_DEPRECATED_TOPOLOGY])
        return self.put_pairs(F_TOPOLOGY, F_TOPOLOGY_PRESENT, words, endpoint[ENDPOINT_TOPOLOGY])   # D29

    cdef bint matching_container(self, const uint32_t* pod, uint32_t where, uint32_t number, bint init, bint every) except -1:
        """Labels of each container that declares this port number, by its first such port; the last one wins. Whether there is one.

        Of init containers only sidecars count, unless `every` one does.
        """
        cdef uint32_t i, j
        cdef const uint32_t* container
        cdef const uint32_t* ports
        cdef bint matched = False
        if not where:
            return False
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
                    matched = True
                    break
        return matched

    cdef int extra_targets(self, Record* record, uint32_t part, const uint32_t* service, const uint32_t* pod) except -1:
        """Declared container ports of the pod that none of its endpoint ports covers; of init containers D16."""
        cdef int position = self.extra_containers(record, part, service, pod, pod[POD_CONTAINERS], False, 0)
        return self.extra_containers(record, part, service, pod, pod[POD_INIT_CONTAINERS], True, <uint32_t> position)

    cdef int extra_containers(
        self, Record* record, uint32_t part, const uint32_t* service, const uint32_t* pod, uint32_t where, bint init, uint32_t position,
    ) except -1:
        cdef uint32_t i, j, number
        cdef const uint32_t* container
        cdef const uint32_t* ports
        cdef const uint32_t* target = self.addresses[part].words
        cdef bint prometheus = (self.profile & PROMETHEUS) != 0
        if not where:
            return <int> position
        where &= ~LITERAL
        cdef uint32_t count = pod[where] & ~LITERAL
        for i in range(count):
            container = pod + where + 1 + i * CONTAINER_SIZE
            if not container[CONTAINER_PORTS] or (init and not prometheus and container[CONTAINER_RESTART] != self.known[W_ALWAYS]):
                continue
            ports = pod + (container[CONTAINER_PORTS] & ~LITERAL)
            for j in range(ports[0] & ~LITERAL):
                number = (ports + 1 + j * PORT_SIZE)[PORT_NUMBER] or self.known[W_ZERO]
                if self.is_covered(record, part, number):
                    continue
                self.count = 0
                self.put(ADDRESS, self.address(pod[POD_IP], number))
                if prometheus:      # D19: without the node
                    self.put(L_NAMESPACE, record.words[META_NAMESPACE])
                    self.namespace_labels(record.words[META_NAMESPACE])
                else:
                    self.pod_place(pod)
                self.pod_labels(pod)
                self.container_labels(container, init)
                self.container_port_labels(ports + 1 + j * PORT_SIZE)
                if record.kind == ENDPOINTS:
                    self.put(L_ENDPOINTS_NAME, record.words[META_NAME])
                else:
                    self.put(L_SLICE_NAME, record.words[META_NAME])
                    self.put(L_SLICE_ADDRESS_TYPE, record.words[SLICE_ADDRESS_TYPE])
                if not prometheus:      # D18
                    self.put(L_ENDPOINT_TARGET_KIND if record.kind == ENDPOINTS else L_SLICE_TARGET_KIND, self.known[W_POD])
                    self.put(L_ENDPOINT_TARGET_NAME if record.kind == ENDPOINTS else L_SLICE_TARGET_NAME, target[ADDRESS_TARGET_NAME])
                self.put_metadata(record.kind, record.words)
                if service != NULL:
                    self.service_labels(service, False)
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
                    if self.number_of(ports + 1 + i * PORT_SIZE, record.kind == ENDPOINTSLICE) == number:
                        return True
            at = self.addresses[at].following
            if at == 0:
                return False

    cdef uint32_t hosts_of(self, Record* record, uint32_t at) noexcept:
        """Number of addresses of an endpoint of a slice."""
        cdef uint32_t where = self.addresses[at].words[ENDPOINT_ADDRESSES]
        return record.words[where & ~LITERAL] & ~LITERAL if where else 0
