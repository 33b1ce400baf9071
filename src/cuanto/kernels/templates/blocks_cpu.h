// Words for kernels in which a block of threads shares an item; on a CPU it is one thread.
//   FOR_BLOCKS(i)          an item for each block
//   FOR_THREADS(j, count)  parts of an item, shared by the threads
//   BARRIER  block_sum(x)  what all threads have, added up
//   SCRATCH                declares `scratch`, memory of the block
//   FIRST_THREAD           what one of them does
//   bits_of(x)             a double as a 64-bit integer
#define FOR_BLOCKS(i) FOR_ITEMS(i)
#define FOR_THREADS(j, count) for (INDEX j = 0; j < (count); ++j)
#define BARRIER
#define SCRATCH
#define FIRST_THREAD
FN double block_sum(double mine) { return mine; }
FN INDEX bits_of(double x) { return reinterpret<INDEX>(x); }
