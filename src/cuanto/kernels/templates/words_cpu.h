// Words for kernels that are written once for both devices: on a CPU, an item is a lane of a vector.
//   KERNEL            an entry point: KERNEL(PARAMETERS) { ... }
//   TABLE             constants: TABLE short name[] = {...};
//   FOR_LANES(count)  runs over the first lanes of vectors; LANE(v) is the number of `v` in that lane
//   SUMS(array)       where items add to `array`, with ADD(place, value)
//   UNROLL_REGISTERS  before a loop that must be unrolled where arrays have to be in registers
#define KERNEL extern "C" void ENTRY
#define TABLE static const
#define FOR_LANES(count) for (int lane = 0; lane < (count); ++lane)
#define LANE(v) (v)[lane]
#define SUMS(array) sums  // of this chunk; the pool of threads adds those of all chunks in their order
#define ADD(place, value) (*(place) += (value))
#define UNROLL_REGISTERS
