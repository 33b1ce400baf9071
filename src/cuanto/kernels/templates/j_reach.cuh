// How many kets each group of bras meets: all but those that are together below the limit (`end`), and, of these, all
// but those that may be treated in single precision (`split`). rest[k]: the sum of the bounds of the last k + 1 kets.
FN int j_needed(const double* rest, INDEX kets, double limit) {
    INDEX low = 0, high = kets;
    while (low < high) {
        const INDEX middle = (low + high) / 2;
        if (rest[middle] <= limit) low = middle + 1;
        else high = middle;
    }
    return (int)(kets - low);
}

extern "C" __global__ void __launch_bounds__(THREADS) ENTRY(PARAMETERS) {
    const INDEX group = (INDEX)blockIdx.x * THREADS + threadIdx.x;
    if (group >= groups) return;
    const int last = j_needed(rest, kets, limit / bounds[group]);
    const int first = j_needed(rest, kets, single_limit / bounds[group]);
    end[group] = last;
    split[group] = first < last ? first : last;
}
