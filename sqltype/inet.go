package sqltype

import (
	"net/netip"
	"strconv"
	"strings"

	"pgaccel/vector"
)

const (
	oidInet = 869
	oidCIDR = 650
)

// The binary forms begin with the family (PGSQL_AF_INET of utils/inet.h; inet_send in network.c writes these),
// the bits of the network, whether it is cidr, and the length of the address.
const (
	familyIPv4 = 2
	familyIPv6 = 3
	inetHeader = 4
)

var (
	inetType = networkType(Type{Kind: vector.Inet, Name: "inet", OID: oidInet, Preferred: true,
		Samples: []string{"0.0.0.0", "10.0.0.1", "10.0.0.1/24", "10.0.0.0/24", "10.0.0.0/25", "10.0.0.2/24", "10.1.0.0/8", "10.0.0.0/9", "10.128.0.0/9", "255.255.255.255", "255.255.255.255/0", "0.0.0.0/0", "1.2.3.4/31",
			"::", "::1", "::/0", "::ffff:1.2.3.4", "::1.2.3.4", "2001:db8::/32", "2001:db8::1/32", "2001:DB8:0:0:1::1", "fe80::1/64", "1:0:0:2::3", "1:2:3:4:5:6:0:8", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/127"},
		Left: []string{"", "10", "10.0.0", "10.0.0.1/33", "10.0.0.1/", "010.0.0.1", "256.0.0.1", "::1/129", "::1%lo", "1::2::3", "10.0.0.1/024", "x"}})
	cidrType = networkType(Type{Kind: vector.CIDR, Name: "cidr", OID: oidCIDR, Implicit: []vector.Kind{vector.Inet}, NoExtremes: true,
		Samples: []string{"0.0.0.0/0", "10.0.0.0/8", "10.0.0.0/9", "10.128.0.0/9", "10.0.0.1/32", "10.0.0.1", "192.168.1.0/24", "::/0", "::1/128", "2001:db8::/32", "2001:db8::/33", "::ffff:1.2.3.0/120"},
		Left:    []string{"", "10", "10.0", "10.0.0.1/24", "10.0.0.0/33", "::1/64"}})
)

// networkType completes the type of a kind of addresses, which are held by networkKey.
func networkType(t Type) Type {
	of := vector.TypeOf(t.Kind)
	cidr := t.Kind == vector.CIDR
	t.Category, t.Binary = 'I', BinaryKey
	t.AppendString = func(dst []byte, s string) []byte { return appendNetwork(dst, s, cidr) }
	t.AppendStringBinary = func(dst []byte, s string) []byte {
		family, bits, addr := networkOf(s)
		dst = append(dst, family, byte(bits), 0, byte(len(addr)))
		if cidr {
			dst[len(dst)-2] = 1
		}
		return append(dst, addr...)
	}
	t.Parse = func(s string) (vector.Datum, bool) {
		addr, bits, ok := parseNetwork(s)
		if !ok || cidr && !isNetwork(addr, bits) {
			return vector.Datum{}, false
		}
		return vector.Datum{Type: of, Str: networkKey(addr, bits)}, true
	}
	t.Receive = func(raw []byte) (vector.Datum, bool) {
		if len(raw) < inetHeader || int(raw[3]) != len(raw)-inetHeader || len(raw) != inetHeader+addressSize(raw[0]) {
			return vector.Datum{}, false
		}
		addr, bits := raw[inetHeader:], int(raw[1])
		if bits > 8*len(addr) || cidr && !isNetwork(addr, bits) {
			return vector.Datum{}, false
		}
		return vector.Datum{Type: of, Str: networkKey(addr, bits)}, true
	}
	return t
}

// addressSize is the length of a family's addresses, which no length is for another one.
func addressSize(family byte) int {
	switch family {
	case familyIPv4:
		return 4
	case familyIPv6:
		return 16
	}
	return -1
}

// networkKey is the string by which an address sorts (network_cmp_internal in src/backend/utils/adt/network.c):
// the family, the bits of the network, of which one that is the beginning of another comes first, the address.
// A bit takes two, so that there is one for the end: four of them are a byte.
func networkKey(addr []byte, bits int) string {
	key := make([]byte, 1+2*len(addr), 1+3*len(addr))
	key[0] = familyIPv4
	if len(addr) == 16 {
		key[0] = familyIPv6
	}
	for i := range bits {
		key[1+i/4] |= (addr[i/8]>>(7-i%8)&1 + 1) << (6 - i%4*2)
	}
	return string(append(key, addr...))
}

// networkOf is what networkKey made a key of.
func networkOf(key string) (family byte, bits int, addr string) {
	size := addressSize(key[0])
	for bits < 8*size && key[1+bits/4]>>(6-bits%4*2)&3 != 0 {
		bits++
	}
	return key[0], bits, key[len(key)-size:]
}

// isNetwork reports whether all bits of an address behind those of the network are 0.
func isNetwork(addr []byte, bits int) bool {
	for i := bits; i < 8*len(addr); i++ {
		if addr[i/8]>>(7-i%8)&1 != 0 {
			return false
		}
	}
	return true
}

// parseNetwork reads addresses that are written in full, with or without the bits of a network. The server
// (pg_inet_net_pton in inet_net_pton.c) takes others, too.
func parseNetwork(s string) (addr []byte, bits int, ok bool) {
	s, mask, masked := strings.Cut(s, "/")
	a, err := netip.ParseAddr(s)
	if err != nil || a.Zone() != "" {
		return nil, 0, false
	}
	addr = a.AsSlice()
	bits = 8 * len(addr)
	if masked {
		n, err := strconv.Atoi(mask)
		if err != nil || n < 0 || n > bits || strconv.Itoa(n) != mask {
			return nil, 0, false
		}
		bits = n
	}
	return addr, bits, true
}

// appendNetwork writes the text form (pg_inet_net_ntop in src/port/inet_net_ntop.c): inet's without the bits
// where these are all.
func appendNetwork(dst []byte, key string, cidr bool) []byte {
	family, bits, addr := networkOf(key)
	if family == familyIPv4 {
		dst = appendIPv4(dst, addr)
	} else {
		dst = appendIPv6(dst, addr)
	}
	if cidr || bits < 8*len(addr) {
		dst = strconv.AppendInt(append(dst, '/'), int64(bits), 10)
	}
	return dst
}

func appendIPv4(dst []byte, addr string) []byte {
	for i := range len(addr) {
		if i > 0 {
			dst = append(dst, '.')
		}
		dst = strconv.AppendInt(dst, int64(addr[i]), 10)
	}
	return dst
}

// appendIPv6 writes the longest run of two or more words of 0, the first of them, as two colons, and an IPv4
// address at the end as one where all or but ffff before it is 0.
func appendIPv6(dst []byte, addr string) []byte {
	var words [8]uint16
	for i := range words {
		words[i] = uint16(addr[2*i])<<8 | uint16(addr[2*i+1])
	}
	best, length := -1, 1
	for i := 0; i < len(words); i++ {
		end := i
		for end < len(words) && words[end] == 0 {
			end++
		}
		if end-i > length {
			best, length = i, end-i
		}
		i = max(i, end)
	}
	for i := 0; i < len(words); i++ {
		if best >= 0 && i >= best && i < best+length {
			if i == best {
				dst = append(dst, ':')
			}
			continue
		}
		if i > 0 {
			dst = append(dst, ':')
		}
		if i == 6 && best == 0 && (length == 6 || length == 5 && words[5] == 0xffff) {
			return appendIPv4(dst, addr[12:])
		}
		dst = strconv.AppendUint(dst, uint64(words[i]), 16)
	}
	if best >= 0 && best+length == len(words) {
		dst = append(dst, ':')
	}
	return dst
}
