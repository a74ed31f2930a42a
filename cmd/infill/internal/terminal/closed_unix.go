//go:build unix

package terminal

/*
#include <fcntl.h>

static int closed;

// Before Go begins, which puts the null device instead of a standard stream that is closed.
__attribute__((constructor)) static void look(void) { closed = fcntl(1, F_GETFD) == -1; }

static int outputClosed(void) { return closed; }
*/
import "C"

// outputClosed reports whether the process was started without standard output (>&-).
func outputClosed() bool { return C.outputClosed() != 0 }
