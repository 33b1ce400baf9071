// The functions that kernels call: barriers, warp functions, atomics, arithmetic (included after cuda_on_cpu.h).
namespace simt {

template <class T>
unsigned long long pack(T value) {
    static_assert(sizeof(T) <= sizeof(unsigned long long), "a shuffle moves at most eight bytes");
    unsigned long long bits = 0;
    memcpy(&bits, &value, sizeof(T));
    return bits;
}

template <class T>
T shuffle(const char* what, unsigned mask, T value, int source, int line) {
    wait_warp(what, mask, line, pack(value), source);
    T result;
    memcpy(&result, &running->received, sizeof(T));
    return result;
}

}  // namespace simt

inline void __syncthreads(int line = __builtin_LINE()) { simt::wait(simt::AT_BARRIER, "__syncthreads()", line); }

inline void __syncwarp(unsigned mask = 0xffffffffu, int line = __builtin_LINE()) {
    simt::wait_warp("__syncwarp()", mask, line, 0, simt::lane());
}

template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32, int line = __builtin_LINE()) {
    return simt::shuffle("__shfl_sync()", mask, value, simt::lane() / width * width + (source & (width - 1)), line);
}

template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, int line = __builtin_LINE()) {
    const int me = simt::lane(), from = me + static_cast<int>(delta);
    return simt::shuffle("__shfl_down_sync()", mask, value, from < me / width * width + width ? from : me, line);
}

template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, int line = __builtin_LINE()) {
    const int me = simt::lane(), from = me - static_cast<int>(delta);
    return simt::shuffle("__shfl_up_sync()", mask, value, from >= me / width * width ? from : me, line);
}

template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32, int line = __builtin_LINE()) {
    const int me = simt::lane(), from = me ^ bits;
    return simt::shuffle("__shfl_xor_sync()", mask, value, from < me / width * width + width ? from : me, line);
}

inline unsigned __ballot_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
    simt::wait_warp("__ballot_sync()", mask, line, predicate != 0, simt::lane());
    return simt::running->ballot;
}
inline int __any_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
    return __ballot_sync(mask, predicate, line) != 0;
}
inline int __all_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
    return __ballot_sync(mask, !predicate, line) == 0;
}

template <class T>
T __ldg(const T* p) {
    return *p;
}

// Threads take turns only where they wait, so an ordinary update is atomic.
template <class T>
T simt_replace(T* p, T value) {
    const T before = *p;
    *p = value;
    return before;
}
#define SIMT_ATOMICS(T) \
    inline T atomicAdd(T* p, T x) { return simt_replace(p, static_cast<T>(*p + x)); }
#define SIMT_INTEGER_ATOMICS(T)                                                                 \
    SIMT_ATOMICS(T)                                                                             \
    inline T atomicExch(T* p, T x) { return simt_replace(p, x); }                               \
    inline T atomicMax(T* p, T x) { return simt_replace(p, x > *p ? x : *p); }                  \
    inline T atomicCAS(T* p, T expected, T x) { return simt_replace(p, *p == expected ? x : *p); }
SIMT_ATOMICS(float)
SIMT_ATOMICS(double)
SIMT_INTEGER_ATOMICS(int)
SIMT_INTEGER_ATOMICS(unsigned)
SIMT_INTEGER_ATOMICS(unsigned long long)

template <class T, class U>
auto min(T a, U b) -> decltype(a + b) {
    return b < a ? b : a;
}
template <class T, class U>
auto max(T a, U b) -> decltype(a + b) {
    return a < b ? b : a;
}
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float rsqrt(float x) { return 1.0f / sqrtf(x); }
inline float rsqrtf(float x) { return rsqrt(x); }

template <class TO, class FROM>
TO simt_bits(FROM x) {
    static_assert(sizeof(TO) == sizeof(FROM), "same size");
    TO y;
    memcpy(&y, &x, sizeof(TO));
    return y;
}
inline long long __double_as_longlong(double x) { return simt_bits<long long>(x); }
inline int __float_as_int(float x) { return simt_bits<int>(x); }
inline float __int_as_float(int x) { return simt_bits<float>(x); }
inline long long __double2ll_rn(double x) { return llrint(x); }
inline int __double2loint(double x) { return static_cast<int>(__double_as_longlong(x)); }
inline int __double2hiint(double x) { return static_cast<int>(__double_as_longlong(x) >> 32); }
inline double __hiloint2double(int high, int low) {
    const unsigned long long upper = static_cast<unsigned>(high);
    return simt_bits<double>(upper << 32 | static_cast<unsigned>(low));
}
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __clz(int x) { return x ? __builtin_clz(static_cast<unsigned>(x)) : 32; }
inline int __ffs(int x) { return __builtin_ffs(x); }
