// A libnvJitLink for tests: what it links is its input and the library's path. NAME makes the
// functions' names, which differ between versions; LACKS leaves one out.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct link {
	char out[4096];
	size_t bytes;
	const char *log;
};

int NAME(nvJitLinkCreate)(struct link **l, uint32_t n, const char **options) {
	if (n != 1 || strncmp(options[0], "-arch=sm_", 9))
		return 2;
	*l = calloc(1, sizeof **l);
	return 0;
}
int NAME(nvJitLinkDestroy)(struct link **l) { free(*l); return 0; }
int NAME(nvJitLinkAddData)(struct link *l, int kind, const void *data, size_t n, const char *name) {
	if (kind != 1 && kind != 2) {
		l->log = "what is this?";
		return 3;
	}
	l->out[0] = '0' + kind;
	memcpy(l->out + 1, data, n);
	l->bytes = n + 1;
	return 0;
}
int NAME(nvJitLinkAddFile)(struct link *l, int kind, const char *path) {
	if (kind != 6 || !strstr(path, ".a")) {
		l->log = "not a library\n";
		return 3;
	}
	strcpy(l->out + l->bytes, path);
	l->bytes += strlen(path);
	return 0;
}
#ifndef LACKS
int NAME(nvJitLinkComplete)(struct link *l) { return 0; }
#endif
int NAME(nvJitLinkGetLinkedCubinSize)(struct link *l, size_t *n) { *n = l->bytes; return 0; }
int NAME(nvJitLinkGetLinkedCubin)(struct link *l, void *b) { memcpy(b, l->out, l->bytes); return 0; }
int NAME(nvJitLinkGetErrorLogSize)(struct link *l, size_t *n) { *n = l->log ? strlen(l->log) + 1 : 0; return 0; }
int NAME(nvJitLinkGetErrorLog)(struct link *l, char *b) { strcpy(b, l->log); return 0; }
