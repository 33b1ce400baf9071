// Workspaces of CPU kernels.
#include <stdlib.h>

// Memory that a thread keeps between calls, because allocating large blocks each time costs page faults. The threads
// live as long as the process, so it is never freed (a destructor would also pull in the C++ runtime).
struct Workspace {
    void* memory = nullptr;
    size_t size = 0;
    void* ask(size_t bytes) {
        if (bytes > size) {
            free(memory);
            size = (bytes + 4095) / 4096 * 4096;
            memory = aligned_alloc(4096, size);
        }
        return memory;
    }
};
static thread_local Workspace lane_workspace, uniform_workspace, digest_workspace;

static VEC* lane_memory(INDEX vectors) { return (VEC*)lane_workspace.ask(vectors * sizeof(VEC)); }
static REAL* uniform_memory(INDEX numbers) { return (REAL*)uniform_workspace.ask(numbers * sizeof(REAL)); }
