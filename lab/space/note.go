package space

// Settings has the recorded settings of a namespace: the settings that the lab made,
// and settings that limit workloads.
type Settings struct {
	Sysctls  map[string]string // by name: "net.ipv4.ip_forward"; "absent" if the kernel lacks the sysctl
	Offloads map[string]string // by device and feature: "fab rx-gro"; on, off or absent
	Others   map[string]string // routes, files of devices below /sys/class/net, notes
}

// Add adds other settings, with where (such as "a c1") before each name.
func (s *Settings) Add(where string, other Settings) {
	if where != "" {
		where += " "
	}
	for _, g := range []struct {
		to   *map[string]string
		from map[string]string
	}{{&s.Sysctls, other.Sysctls}, {&s.Offloads, other.Offloads}, {&s.Others, other.Others}} {
		for name, value := range g.from {
			put(g.to, where+name, value)
		}
	}
}

// Note adds an entry to Others.
func (s *Settings) Note(name, value string) { put(&s.Others, name, value) }

func put(to *map[string]string, name, value string) {
	if *to == nil {
		*to = map[string]string{}
	}
	(*to)[name] = value
}

// Settings returns the recorded settings of the namespace.
func (s *Space) Settings() Settings {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all Settings
	all.Add("", s.record)
	return all
}

// Note records a fact about the namespace that no other method records, such as the
// datapath that a program chose.
func (s *Space) Note(name, value string) { s.note(&s.record.Others, name, value) }

// Include adds another namespace's settings, with where before each name.
func (s *Space) Include(where string, other Settings) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record.Add(where, other)
}

func (s *Space) note(to *map[string]string, name, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	put(to, name, value)
}
