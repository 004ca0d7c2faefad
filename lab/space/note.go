package space

// Note records something that holds in the namespace and is not set by one of
// the methods here, such as which of two data paths a program chose.
func (s *Space) Note(key, value string) { s.note(key, value) }
