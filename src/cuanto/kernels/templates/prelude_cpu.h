// The vocabulary of the kernel texts for a CPU: one integral per SIMD lane.
//
// A kernel text is: the #defines of its target, a prelude, boys.h, generated code. The generated code uses only
// the names below, so one text serves a CPU (this file) and a GPU (prelude_cuda.cuh, where a vector is one number).
//   REAL  VEC  MASK  FN  UNROLL  NO_UNROLL  LANES
//   KERNEL  FOR_ITEMS  FOR_VECTORS  ITEMS_LEFT  FOR_TEAMS  FOR_MEMBERS  team_sum (and others)
//   vset  vload  vstore  vread  vwrite  vfma  vrcp  vsqrt  vrsqrt (1 / sqrt)  vexp (argument <= 0)  vselect  vany  vsum (of lanes)  vround  vrow4
// Needs GCC >= 9 or Clang (also as zig c++) and no header. Flags: -O2 -ffp-contract=fast and the machine's own
// instruction set; never -ffast-math, whose reassociation would break vround and vexp. Every LANES is correct
// everywhere; the fastest fills a register of the machine (GCC keeps longer vectors in memory).
#ifdef __FAST_MATH__
#error "compile without -ffast-math: rounding by a large constant must not be simplified away"
#endif
#ifndef REAL
#define REAL double
#endif
#define CUANTO_JOIN_(a, b) a##b
#define CUANTO_JOIN(a, b) CUANTO_JOIN_(a, b)
#define CUANTO_SINGLE_float 1
#define CUANTO_SINGLE CUANTO_JOIN(CUANTO_SINGLE_, REAL)  // 1 when REAL is float, 0 when it is double
#ifndef LANES  // fill a register, with at most 8 lanes, to which data are padded
#if defined(__AVX512F__) || (defined(__AVX__) && CUANTO_SINGLE)
#define LANES 8
#elif defined(__AVX__) || CUANTO_SINGLE
#define LANES 4
#else
#define LANES 2
#endif
#endif
#if LANES != 2 && LANES != 4 && LANES != 8 && LANES != 16
#error "LANES must be 2, 4, 8 or 16"
#endif
typedef long long INDEX;

#ifndef __has_builtin
#define __has_builtin(name) 0
#endif

// Kernels: KERNEL(threads of a block) ENTRY(PARAMETERS) processes the items begin .. end, one by one (FOR_ITEMS) or, where
// they are contiguous, LANES at once (FOR_VECTORS), of which `ITEMS_LEFT` are valid (vread, vwrite).
#define KERNEL(threads) extern "C" void
#define FOR_ITEMS(i) for (INDEX i = begin; i < end; ++i)
#define FOR_VECTORS(i) for (INDEX i = begin; i < end; i += LANES)
#define ITEMS_LEFT(i) (end - i < LANES ? int(end - i) : LANES)
// Teams: the threads of a block may process an item together (FOR_TEAMS) and share a range (FOR_MEMBERS, or the contiguous
// part that begins at MEMBER_BEGIN); team_least, team_most, team_sum and team_before (the sum over preceding members) combine
// their numbers. On a CPU a team has one member.
#define FOR_TEAMS(i) FOR_ITEMS(i)
#define FOR_MEMBERS(k, from, to) for (INDEX k = (from); k < (to); ++k)
#define MEMBER_BEGIN(count) INDEX(0)
#define MEMBER_END(count) INDEX(count)
#define FIRST_MEMBER true
#define SCRATCH  // declares `scratch`, memory of a team; here an argument
#define BARRIER  // members wait for each other
// Others: TABLE: constants; FOR_LANES(count): loop over the first lanes of vectors, LANE(v): element of `v` in that lane;
// SUMS(array): where items add to `array`, by ADD(place, value); UNROLL_REGISTERS: unroll where arrays must be in registers.
#define TABLE static const
#define FOR_LANES(count) for (int lane = 0; lane < (count); ++lane)
#define LANE(v) (v)[lane]
#define SUMS(array) sums  // of this chunk; the thread pool adds those of all chunks in a fixed order
#define ADD(place, value) (*(place) += (value))
#define UNROLL_REGISTERS
#define FN static inline __attribute__((always_inline, unused))
#define FN_MEMBER inline __attribute__((always_inline))
#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#define NO_UNROLL _Pragma("clang loop unroll(disable)")
#else
#define UNROLL _Pragma("GCC unroll 64")
#define NO_UNROLL _Pragma("GCC unroll 1")
#pragma GCC diagnostic ignored "-Wpsabi"  // every function is inlined: no vector crosses a call
#endif

#if CUANTO_SINGLE
#define CUANTO_BYTES (4 * LANES)
typedef int INT;
typedef unsigned int UINT;
#else
#define CUANTO_BYTES (8 * LANES)
typedef long long INT;
typedef unsigned long long UINT;
#endif
typedef REAL VEC __attribute__((vector_size(LANES * sizeof(REAL))));
typedef INT MASK __attribute__((vector_size(LANES * sizeof(REAL))));  // -1 where true, 0 where false
typedef UINT VBITS __attribute__((vector_size(LANES * sizeof(REAL))));

FN INDEX bits_of(double x) {
    INDEX bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
}

template <class T> FN T team_least(T x) { return x; }
template <class T> FN T team_most(T x) { return x; }
template <class T> FN T team_sum(T x) { return x; }
template <class T> FN T team_before(T) { return 0; }

// ---- moving data ------------------------------------------------------------------------------------------
FN VEC vset(REAL x) { return x - VEC{}; }  // x - 0 is x for every x, also for -0

FN VEC vload(const REAL* p) {
    VEC v;
    __builtin_memcpy(&v, p, sizeof(VEC));
    return v;
}

FN void vstore(REAL* p, VEC v) { __builtin_memcpy(p, &v, sizeof(VEC)); }

FN VEC vread(const REAL* p, int count) {
    if (count == LANES) return vload(p);
    VEC v = {};
    for (int i = 0; i < count; ++i) v[i] = p[i];
    return v;
}

FN void vwrite(REAL* p, VEC v, int count) {
    if (count == LANES) return vstore(p, v);
    for (int i = 0; i < count; ++i) p[i] = v[i];
}

FN VEC vselect(MASK where, VEC yes, VEC no) { return where ? yes : no; }
FN REAL vselect(bool where, REAL yes, REAL no) { return where ? yes : no; }

template <class TO, class FROM>
FN TO reinterpret(FROM x) {
    static_assert(sizeof(TO) == sizeof(FROM), "same size");
    TO y;
    __builtin_memcpy(&y, &x, sizeof(TO));
    return y;
}

// Whether any lane is true, by the machine's instruction where the compiler has no builtin for it.
#if __has_builtin(__builtin_reduce_or)
FN bool vany(MASK m) { return __builtin_reduce_or(m) != 0; }
#elif CUANTO_BYTES == 64 && defined(__AVX512F__) && !defined(__clang__)
typedef int TEST __attribute__((vector_size(64)));
FN bool vany(MASK m) { return __builtin_ia32_ptestmd512((TEST)m, (TEST)m, -1) != 0; }
#elif CUANTO_BYTES == 32 && defined(__AVX__)
typedef float TEST __attribute__((vector_size(32)));
FN bool vany(MASK m) { return __builtin_ia32_movmskps256((TEST)m) != 0; }
#elif CUANTO_BYTES == 16 && defined(__SSE2__)
typedef float TEST __attribute__((vector_size(16)));
FN bool vany(MASK m) { return __builtin_ia32_movmskps((TEST)m) != 0; }
#else
FN bool vany(MASK m) {
    INT all = 0;
    UNROLL for (int i = 0; i < LANES; ++i) all |= m[i];
    return all != 0;
}
#endif

// ---- arithmetic -------------------------------------------------------------------------------------------
// The compiler fuses these; fma() would become a library call on machines without the instruction.
FN VEC vfma(VEC a, VEC b, VEC c) { return a * b + c; }
FN VEC vfma(REAL a, VEC b, VEC c) { return a * b + c; }
FN REAL vfma(REAL a, REAL b, REAL c) { return a * b + c; }

FN VEC vrcp(VEC x) { return REAL(1) / x; }
FN REAL vrcp(REAL x) { return REAL(1) / x; }

FN float sqrt_of(float x) { return __builtin_sqrtf(x); }
FN double sqrt_of(double x) { return __builtin_sqrt(x); }
FN REAL vsqrt(REAL x) { return sqrt_of(x); }

// The square root of a vector, for the same reason by builtins.
#if __has_builtin(__builtin_elementwise_sqrt)
FN VEC vsqrt(VEC x) { return __builtin_elementwise_sqrt(x); }
#elif CUANTO_BYTES == 64 && defined(__AVX512F__) && !defined(__clang__) && CUANTO_SINGLE
FN VEC vsqrt(VEC x) { return __builtin_ia32_sqrtps512_mask(x, x, -1, 4); }
#elif CUANTO_BYTES == 64 && defined(__AVX512F__) && !defined(__clang__)
FN VEC vsqrt(VEC x) { return __builtin_ia32_sqrtpd512_mask(x, x, -1, 4); }
#elif CUANTO_BYTES == 32 && defined(__AVX__) && CUANTO_SINGLE
FN VEC vsqrt(VEC x) { return __builtin_ia32_sqrtps256(x); }
#elif CUANTO_BYTES == 32 && defined(__AVX__)
FN VEC vsqrt(VEC x) { return __builtin_ia32_sqrtpd256(x); }
#elif CUANTO_BYTES == 16 && defined(__SSE2__) && CUANTO_SINGLE
FN VEC vsqrt(VEC x) { return __builtin_ia32_sqrtps(x); }
#elif CUANTO_BYTES == 16 && defined(__SSE2__)
FN VEC vsqrt(VEC x) { return __builtin_ia32_sqrtpd(x); }
#else
FN VEC vsqrt(VEC x) {
    UNROLL for (int i = 0; i < LANES; ++i) x[i] = sqrt_of(x[i]);
    return x;
}
#endif

// 1 / sqrt(x) within the range of float. Where the machine has an estimate, it is refined by Newton steps: a division and
// a square root would take as long as the integrals of a low class.
#if CUANTO_BYTES == 64 && defined(__AVX512F__) && !defined(__clang__) && CUANTO_SINGLE
#define CUANTO_NEWTON 1
FN VEC rsqrt_estimate(VEC x) { return __builtin_ia32_rsqrt14ps512_mask(x, x, -1); }
#elif CUANTO_BYTES == 64 && defined(__AVX512F__) && !defined(__clang__)
#define CUANTO_NEWTON 2
FN VEC rsqrt_estimate(VEC x) { return __builtin_ia32_rsqrt14pd512_mask(x, x, -1); }
#elif CUANTO_BYTES == 32 && defined(__AVX__) && !CUANTO_SINGLE
#define CUANTO_NEWTON 3
FN VEC rsqrt_estimate(VEC x) {
    typedef float HALF __attribute__((vector_size(16)));
    return __builtin_convertvector(__builtin_ia32_rsqrtps(__builtin_convertvector(x, HALF)), VEC);
}
#endif
#ifdef CUANTO_NEWTON
FN VEC vrsqrt(VEC x) {
    VEC y = rsqrt_estimate(x);
    const VEC half = x * REAL(-0.5);
    UNROLL for (int i = 0; i < CUANTO_NEWTON; ++i) y = vfma(y, vfma(half * y, y, vset(REAL(0.5))), y);
    return y;
}
#else
FN VEC vrsqrt(VEC x) { return vrcp(vsqrt(x)); }
#endif
FN REAL vrsqrt(REAL x) { return vrcp(vsqrt(x)); }

FN REAL vsum(VEC v) {
    REAL sum = v[0];
    UNROLL for (int i = 1; i < LANES; ++i) sum += v[i];
    return sum;
}

// Adding 1.5 * 2^(mantissa bits) leaves x, rounded to an integer, in the lowest bits.
#if CUANTO_SINGLE
#define CUANTO_ROUNDER REAL(12582912.0)
#define CUANTO_INTEGER_BITS 0x1fffffu
#else
#define CUANTO_ROUNDER REAL(6755399441055744.0)
#define CUANTO_INTEGER_BITS 0xffffffffu
#endif

// exp(x) = 2^k exp(r), |r| <= ln(2)/2, exp(r) = 1 + r + r^2 q(r) with q the minimax polynomial of relative error
// 4e-18 (float: 3e-9); even and odd powers separately, for a short chain of dependent operations.
template <class V, class BITS>
FN V exp_of_negative(V x) {
#if CUANTO_SINGLE
    const V shifted = x * REAL(1.4426950408889634) + CUANTO_ROUNDER;
    const V k = shifted - CUANTO_ROUNDER;
    const V r = (x - k * REAL(0.693115234375)) - k * REAL(3.1946184945309415e-05);  // ln 2 in two parts
    const V s = r * r;
    const V even = (s * REAL(0.0013814595295116305) + REAL(0.04166838899254799)) * s + REAL(0.4999999403953552);
    const V odd = s * REAL(0.008368716575205326) + REAL(0.1666652113199234);
    const REAL lowest = REAL(-87);
    const int exponent = 23;
#else
    const V shifted = x * REAL(1.4426950408889634) + CUANTO_ROUNDER;
    const V k = shifted - CUANTO_ROUNDER;
    const V r = (x - k * REAL(0.6931471803691238)) - k * REAL(1.9082149292705877e-10);  // ln 2 in two parts
    const V s = r * r;
    const V even = (((s * REAL(2.763024830872524e-07) + REAL(2.480149309914401e-05)) * s +
                     REAL(0.001388888894362984)) * s + REAL(0.04166666666653016)) * s + REAL(0.5000000000000011);
    const V odd = (((s * REAL(2.5000058349050145e-08) + REAL(2.7557586382581075e-06)) * s +
                    REAL(0.00019841269506571107)) * s + REAL(0.008333333333494463)) * s + REAL(0.16666666666666413);
    const REAL lowest = REAL(-708);
    const int exponent = 52;
#endif
    const V power = ((odd * r + even) * s + r) + REAL(1);
    const V scaled = reinterpret<V>(BITS(reinterpret<BITS>(power) + (reinterpret<BITS>(shifted) << exponent)));
    return vselect(x >= lowest, scaled, V{});
}
FN VEC vexp(VEC x) { return exp_of_negative<VEC, VBITS>(x); }
FN REAL vexp(REAL x) { return exp_of_negative<REAL, UINT>(x); }

// ---- table look-up ----------------------------------------------------------------------------------------
FN VEC vround(VEC x) { return (x + CUANTO_ROUNDER) - CUANTO_ROUNDER; }  // nearest integer, |x| < 2^21

#ifdef __clang__
#define CUANTO_SHUFFLE_(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define CUANTO_SHUFFLE_(a, b, ...) __builtin_shuffle(a, b, MASK{__VA_ARGS__})
#endif
#define CUANTO_SHUFFLE(a, b, pattern) CUANTO_SHUFFLE_(a, b, CUANTO_BLOCKS(pattern))
#define CUANTO_EVEN_ONES(k) k, k + LANES, k + 2, k + 2 + LANES
#define CUANTO_ODD_ONES(k) k + 1, k + 1 + LANES, k + 3, k + 3 + LANES
#define CUANTO_LOW_PAIRS(k) k, k + 1, k + LANES, k + 1 + LANES
#define CUANTO_HIGH_PAIRS(k) k + 2, k + 3, k + 2 + LANES, k + 3 + LANES
#if LANES == 4
#define CUANTO_BLOCKS(pattern) pattern(0)
#elif LANES == 8
#define CUANTO_BLOCKS(pattern) pattern(0), pattern(4)
#else
#define CUANTO_BLOCKS(pattern) pattern(0), pattern(4), pattern(8), pattern(12)
#endif

#if LANES > 2
// Concatenate four consecutive numbers from each of the addresses p[0], p[4], p[8], ...
FN VEC fours(const REAL* const* p) {
#if defined(__clang__) || __GNUC__ >= 12
    typedef REAL FOUR __attribute__((vector_size(4 * sizeof(REAL))));
    FOUR part[LANES / 4];
    UNROLL for (int i = 0; i < LANES / 4; ++i) __builtin_memcpy(&part[i], p[4 * i], sizeof(FOUR));
#if LANES == 4
    return part[0];
#elif LANES == 8
    return __builtin_shufflevector(part[0], part[1], 0, 1, 2, 3, 4, 5, 6, 7);
#else
    return __builtin_shufflevector(__builtin_shufflevector(part[0], part[1], 0, 1, 2, 3, 4, 5, 6, 7),
                                   __builtin_shufflevector(part[2], part[3], 0, 1, 2, 3, 4, 5, 6, 7),
                                   0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
#endif
#else  // older compilers cannot join two vectors in registers
    VEC v;
    for (int i = 0; i < LANES; i += 4) __builtin_memcpy(reinterpret_cast<REAL*>(&v) + i, p[i], 4 * sizeof(REAL));
    return v;
#endif
}
#endif

// column[j] = table[offset + j] for j = 0..3, each lane at its own whole-numbered offset (< 2^21). Several numbers
// are read at once for each lane and transposed in registers, which is much cheaper than gathering each column.
FN void vrow4(const REAL* table, VEC offset, VEC* column) {
    const VEC shifted = offset + CUANTO_ROUNDER;
    UINT word[LANES];
    __builtin_memcpy(word, &shifted, sizeof(VEC));
    const REAL* at[LANES];
    UNROLL for (int i = 0; i < LANES; ++i) at[i] = table + (unsigned(word[i]) & CUANTO_INTEGER_BITS);
#if LANES == 2
    UNROLL for (int j = 0; j < 4; j += 2) {
        column[j] = CUANTO_SHUFFLE_(vload(at[0] + j), vload(at[1] + j), 0, 2);
        column[j + 1] = CUANTO_SHUFFLE_(vload(at[0] + j), vload(at[1] + j), 1, 3);
    }
#else
    const VEC row[4] = {fours(at), fours(at + 1), fours(at + 2), fours(at + 3)};
    const VEC a = CUANTO_SHUFFLE(row[0], row[1], CUANTO_EVEN_ONES);
    const VEC b = CUANTO_SHUFFLE(row[0], row[1], CUANTO_ODD_ONES);
    const VEC c = CUANTO_SHUFFLE(row[2], row[3], CUANTO_EVEN_ONES);
    const VEC d = CUANTO_SHUFFLE(row[2], row[3], CUANTO_ODD_ONES);
    column[0] = CUANTO_SHUFFLE(a, c, CUANTO_LOW_PAIRS);
    column[1] = CUANTO_SHUFFLE(b, d, CUANTO_LOW_PAIRS);
    column[2] = CUANTO_SHUFFLE(a, c, CUANTO_HIGH_PAIRS);
    column[3] = CUANTO_SHUFFLE(b, d, CUANTO_HIGH_PAIRS);
#endif
}
