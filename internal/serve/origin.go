package serve

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// hostName is a host as browsers send it, in ASCII: xn--... for other letters.
var hostName = regexp.MustCompile(`^[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?$`)

// numeric is the form of a host that browsers read as an IPv4 address.
var numeric = regexp.MustCompile(`(^|\.)(0x[0-9a-f]*|[0-9]+)\.?$`)

// ParseOrigin reads SCHEME://HOST or SCHEME://HOST:PORT and returns it as
// browsers send it: in lower case, without the scheme's own port. It returns an
// error for a text that no browser's origin can equal.
func ParseOrigin(text string) (string, error) {
	wrong := func(reason string) error {
		return fmt.Errorf("%q is not SCHEME://HOST, such as https://example.org: %s", text, reason)
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return "", wrong("it has no host")
	}
	if text != text[:len(u.Scheme)]+"://"+u.Host {
		return "", wrong("leave out what stands beside scheme, host and port")
	}
	host, err := originHost(u.Hostname())
	if err != nil {
		return "", wrong(err.Error())
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	if u.Port() != "" && err != nil {
		return "", wrong("a port is a number up to 65535")
	}
	origin := u.Scheme + "://" + host
	own := map[string]uint64{"http": 80, "https": 443}[u.Scheme]
	if u.Port() == "" || port == own {
		return origin, nil
	}
	return fmt.Sprintf("%s:%d", origin, port), nil
}

func originHost(host string) (string, error) {
	host = strings.ToLower(host)
	address, err := netip.ParseAddr(host)
	switch {
	case err == nil && address.Is6():
		return "[" + browserIPv6(address) + "]", nil
	case err == nil:
		return host, nil
	case numeric.MatchString(host):
		return "", fmt.Errorf("write the address in four numbers, such as 127.0.0.1")
	case !hostName.MatchString(host):
		return "", fmt.Errorf("write the host in ASCII, as location.origin has it in the browser's console (xn--...)")
	}
	return host, nil
}

// browserIPv6 returns an address as browsers write it: an IPv4 address that is
// mapped into IPv6 has hexadecimal digits there.
func browserIPv6(a netip.Addr) string {
	if !a.Is4In6() {
		return a.String()
	}
	b := a.As16()
	return fmt.Sprintf("::ffff:%x:%x", uint(b[12])<<8|uint(b[13]), uint(b[14])<<8|uint(b[15]))
}
