package cli

import (
	"errors"
	"os"
	"strings"

	"infill/internal/batch"
)

// IsFile is the one rule that tells whether an argument is a file or a text. An
// argument that names a file that exists is the file, whatever is in its name. One that
// looks like a path of a form that the program reads, and names no file, is an error. After
// -- nothing is a file.
func IsFile(argument string, afterDash bool) (file bool, err error) {
	if afterDash || argument == "" {
		return false, nil
	}
	info, err := os.Stat(argument)
	if err == nil && !info.IsDir() {
		return true, nil
	}
	there := "there is no file " + Quoted(argument)
	if err == nil {
		there = Quoted(argument) + " is a folder"
	}
	form, unknown := batch.FormOf(argument)
	if unknown != nil {
		return false, nil
	}
	// "I read notes.txt" is a text; "My notes.csv" and "a/my notes.txt" are paths.
	sentence := strings.ContainsAny(argument, " \t\n") && !strings.ContainsAny(argument, `/\`)
	if sentence && form == "text" || strings.ContainsAny(argument, "\n") {
		return false, nil
	}
	return false, &UsageError{errors.New(there), "put -- before a text that looks like a path"}
}

// Quoted returns a path so that it can be pasted into a shell.
func Quoted(path string) string {
	plain := func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		return letter || strings.ContainsRune("._-/:=+@,%", r)
	}
	if path != "" && strings.IndexFunc(path, func(r rune) bool { return !plain(r) }) < 0 {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
