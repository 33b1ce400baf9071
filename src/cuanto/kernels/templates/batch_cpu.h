// What the CPU batch loops share.
#include <stdlib.h>

#define FN_MEMBER inline __attribute__((always_inline))

static void* vector_memory(INDEX vectors) {
    const size_t bytes = (size_t)(vectors > 0 ? vectors : 1) * sizeof(VEC);
    return aligned_alloc(sizeof(VEC), bytes);
}
static void vector_free(void* memory) { free(memory); }
