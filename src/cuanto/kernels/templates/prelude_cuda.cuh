// The vocabulary of the kernel texts for a GPU: one integral per thread (prelude_cpu.h has the list of names).
//
// A "vector" is one number of a thread. Needs no header: NVRTC provides all functions.
#ifndef REAL
#define REAL double
#endif
#define LANES 1
typedef long long INDEX;

#define CUANTO_JOIN_(a, b) a##b
#define CUANTO_JOIN(a, b) CUANTO_JOIN_(a, b)
#define CUANTO_SINGLE_float 1
#define CUANTO_SINGLE CUANTO_JOIN(CUANTO_SINGLE_, REAL)  // 1 when REAL is float, 0 when it is double

#define KERNEL(threads) extern "C" __global__ void __launch_bounds__(threads)
#define FOR_ITEMS(i)                                                                              \
    for (INDEX i = begin + (INDEX)blockIdx.x * blockDim.x + threadIdx.x; i < end; i += (INDEX)gridDim.x * blockDim.x)
#define FOR_VECTORS(i) FOR_ITEMS(i)
#define ITEMS_LEFT(i) 1
#define FOR_TEAMS(i) for (INDEX i = begin + blockIdx.x; i < end; i += gridDim.x)
#define FOR_MEMBERS(k, from, to) for (INDEX k = (from) + threadIdx.x; k < (to); k += blockDim.x)
#define MEMBER_BEGIN(count) (INDEX(threadIdx.x) * (count) / blockDim.x)
#define MEMBER_END(count) (INDEX(threadIdx.x + 1) * (count) / blockDim.x)
#define FIRST_MEMBER (threadIdx.x == 0)
#define SCRATCH extern __shared__ double scratch[];
#define BARRIER __syncthreads()
#define TABLE __device__ static const
#define FOR_LANES(count) for (int lane = 0; lane < 1; ++lane)
#define LANE(v) (v)
#define SUMS(array) Sums{(WORD*)sums}
#define ADD(place, value) add_parts(place, parts_of(value))
#define UNROLL_REGISTERS UNROLL
#define FN __device__ __forceinline__
#define FN_MEMBER __device__ __forceinline__
#define UNROLL _Pragma("unroll")
#define NO_UNROLL _Pragma("unroll 1")

typedef REAL VEC;
typedef bool MASK;

FN VEC vset(REAL x) { return x; }
FN VEC vload(const REAL* p) { return *p; }
FN void vstore(REAL* p, VEC v) { *p = v; }
FN VEC vread(const REAL* p, int) { return *p; }
FN void vwrite(REAL* p, VEC v, int) { *p = v; }
FN VEC vselect(MASK where, VEC yes, VEC no) { return where ? yes : no; }
FN bool vany(MASK m) { return m; }

FN VEC vfma(VEC a, VEC b, VEC c) { return fma(a, b, c); }
FN VEC vrcp(VEC x) { return REAL(1) / x; }
FN VEC vsqrt(VEC x) { return sqrt(x); }
FN VEC vrsqrt(VEC x) { return rsqrt(x); }
FN VEC vexp(VEC x) { return exp(x); }

// Rounding by adding 1.5 * 2^(mantissa bits): two additions and a register, where a conversion runs at a quarter
// of the rate or less.
#if CUANTO_SINGLE
#define CUANTO_ROUNDER REAL(12582912.0)
FN int low_bits(REAL shifted) { return __float_as_int(shifted) & 0x1fffff; }
#else
#define CUANTO_ROUNDER REAL(6755399441055744.0)
FN int low_bits(REAL shifted) { return __double2loint(shifted); }
#endif
FN VEC vround(VEC x) { return (x + CUANTO_ROUNDER) - CUANTO_ROUNDER; }  // nearest integer, |x| < 2^21

// column[j] = table[offset + j] for j = 0..3, at a whole-numbered offset (0 <= offset < 2^21)
FN void vrow4(const REAL* table, VEC offset, VEC* column) {
    const REAL* row = table + low_bits(offset + CUANTO_ROUNDER);
    UNROLL for (int j = 0; j < 4; ++j) column[j] = __ldg(row + j);
}

// Sums to which threads add in any order, with the same digits every time: whole numbers, which need no rounding. Each
// sum consists of two of them, in units of 2^-6 and 2^-46; what is too large, or not a number, makes the sum no number
// (add_sums.cuh).
typedef unsigned long long WORD;
#define COARSE 64.0
#define FINE 70368744177664.0
#define TOO_LARGE 0x1p50
#define OVERFLOWN (1ll << 62)  // instead of a coarse part

struct Sums {
    WORD* words;
    FN_MEMBER Sums operator+(INDEX k) const { return {words + 2 * k}; }
};

struct Parts { INDEX coarse, fine; };

FN Parts parts_of(double value) {
    if (fabs(value) < 0.5 / COARSE) return {0, __double2ll_rn(FINE * value)};
    if (!(fabs(value) < TOO_LARGE)) return {OVERFLOWN, 0};
    const INDEX coarse = __double2ll_rn(COARSE * value);
    return {coarse, __double2ll_rn(FINE * (value - coarse / COARSE))};
}

FN void add_parts(const Sums& place, const Parts& value) {
    if (value.coarse == OVERFLOWN) atomicExch(place.words, (WORD)OVERFLOWN);
    else if (value.coarse != 0) atomicAdd(place.words, (WORD)value.coarse);
    atomicAdd(place.words + 1, (WORD)value.fine);
}

FN INDEX bits_of(double x) { return __double_as_longlong(x); }

// Combine the numbers of the members of a team in shared memory; all threads of the block must call this.
template <class T, class F>
FN T team_combined(T x, const F& combine) {
    __shared__ T all[1024];
    __syncthreads();
    all[threadIdx.x] = x;
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        if ((int)threadIdx.x < half) all[threadIdx.x] = combine(all[threadIdx.x], all[threadIdx.x + half]);
    }
    __syncthreads();
    return all[0];
}
struct TeamLeast { template <class T> FN_MEMBER T operator()(T a, T b) const { return b < a ? b : a; } };
struct TeamMost { template <class T> FN_MEMBER T operator()(T a, T b) const { return b > a ? b : a; } };
struct TeamSum { template <class T> FN_MEMBER T operator()(T a, T b) const { return a + b; } };
template <class T> FN T team_least(T x) { return team_combined(x, TeamLeast()); }
template <class T> FN T team_most(T x) { return team_combined(x, TeamMost()); }
template <class T> FN T team_sum(T x) { return team_combined(x, TeamSum()); }
template <class T>
FN T team_before(T x) {
    __shared__ T all[1024];
    __syncthreads();
    all[threadIdx.x] = x;
    __syncthreads();
    T sum = 0;
    for (int before = 0; before < (int)threadIdx.x; ++before) sum += all[before];
    return sum;
}
