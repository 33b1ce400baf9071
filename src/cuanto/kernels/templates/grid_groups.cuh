// Points, groups of points and their lists of shells, made on the device.
#define FIRST_THREAD ((INDEX)blockIdx.x * blockDim.x + threadIdx.x)

#ifdef KERNEL_PLACE
// A thread for each point: its place, atom and weight in the integral over the atom, and the key of its group: the atom's
// sphere for the inner shells (depth < fraction), else atoms + the number of its cube.
extern "C" __global__ void __launch_bounds__(SETUP_THREADS) ENTRY(PARAMETERS) {
    const INDEX g = FIRST_THREAD;
    if (g >= points) return;
    INDEX a = 0;
    for (INDEX end = atoms; end - a > 1;) {  // atom_first[a] <= g < atom_first[a + 1]
        const INDEX middle = (a + end) / 2;
        if (atom_first[middle] <= g) a = middle;
        else end = middle;
    }
    const INDEX j = pattern_first[a] + g - atom_first[a];
    INDEX cube = 0;
    for (int x = 0; x < 3; ++x) {
        const double r = pattern[3 * j + x] + atom[3 * a + x];
        position[x * points + g] = r;
        cube = cube * cubes[x] + (INDEX)((r - low[x]) / edge);
    }
    own[g] = (int)a;
    weight[g] = pattern_weight[j];
    key[g] = pattern_depth[j] < fraction ? a : atoms + cube;
}
#endif

#ifdef KERNEL_EXTENTS
// A block for each group: the box of its points, the middle of the box, and the radius around it.
FN void reduce(double* shared, int count, bool largest) {
    for (int half = SETUP_THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if ((int)threadIdx.x < half)
            for (int c = 0; c < count; ++c) {
                double* mine = shared + c * SETUP_THREADS + threadIdx.x;
                if (largest ? mine[half] > *mine : mine[half] < *mine) *mine = mine[half];
            }
    }
    __syncthreads();
}

extern "C" __global__ void __launch_bounds__(SETUP_THREADS) ENTRY(PARAMETERS) {
    __shared__ double least[3 * SETUP_THREADS], most[3 * SETUP_THREADS];
    const INDEX group = blockIdx.x, begin = first[group], end = first[group + 1];
    for (int x = 0; x < 3; ++x) {
        const double* r = position + x * points;
        double a = r[begin], b = a;
        for (INDEX g = begin + threadIdx.x; g < end; g += SETUP_THREADS) {
            a = r[g] < a ? r[g] : a;
            b = r[g] > b ? r[g] : b;
        }
        least[x * SETUP_THREADS + threadIdx.x] = a;
        most[x * SETUP_THREADS + threadIdx.x] = b;
    }
    reduce(least, 3, false);
    reduce(most, 3, true);
    double middle[3], away = 0;
    for (int x = 0; x < 3; ++x) middle[x] = (least[x * SETUP_THREADS] + most[x * SETUP_THREADS]) / 2;
    if (threadIdx.x < 3) {
        box_low[3 * group + threadIdx.x] = least[threadIdx.x * SETUP_THREADS];
        box_high[3 * group + threadIdx.x] = most[threadIdx.x * SETUP_THREADS];
        centre[3 * group + threadIdx.x] = middle[threadIdx.x];
    }
    __syncthreads();
    for (INDEX g = begin + threadIdx.x; g < end; g += SETUP_THREADS) {
        double d = 0;
        for (int x = 0; x < 3; ++x) d += (position[x * points + g] - middle[x]) * (position[x * points + g] - middle[x]);
        away = d > away ? d : away;
    }
    most[threadIdx.x] = away;
    reduce(most, 1, true);
    if (threadIdx.x == 0) radius[group] = sqrt(most[0]);
}
#endif

#if defined(KERNEL_COUNT) || defined(KERNEL_FILL)
// Does any function of the shell exceed the threshold somewhere in the group? From the least distance to its points.
FN bool matters(INDEX group, INDEX s, const double* box_low, const double* box_high, const double* centre,
                const double* radius, const double* shell_centre, const double* reach) {
    double to_box = 0, to_centre = 0;
    for (int x = 0; x < 3; ++x) {
        const double R = shell_centre[3 * s + x], m = R - centre[3 * group + x];
        const double below = box_low[3 * group + x] - R, above = R - box_high[3 * group + x];
        const double outside = below > above ? below : above;
        if (outside > 0) to_box += outside * outside;
        to_centre += m * m;
    }
    const double by_ball = sqrt(to_centre) - radius[group], by_box = sqrt(to_box);
    return (by_ball > by_box ? by_ball : by_box) < reach[s];
}

// Shells and functions of each thread's part of all shells, then of all parts before it.
#define PART(t) ((t) * shells / SETUP_THREADS)
#endif

#ifdef KERNEL_COUNT
// A block for each group: how many shells and functions matter, and a number (a sum of random ones) that is the same for
// groups with the same shells.
extern "C" __global__ void __launch_bounds__(SETUP_THREADS) ENTRY(PARAMETERS) {
    __shared__ int counts[2][SETUP_THREADS];
    __shared__ unsigned long long sums[SETUP_THREADS];
    const INDEX group = blockIdx.x;
    const int t = threadIdx.x;
    int found = 0, functions = 0;
    unsigned long long sum = 0;
    for (INDEX s = t; s < shells; s += SETUP_THREADS)
        if (matters(group, s, box_low, box_high, centre, radius, shell_centre, reach)) {
            ++found;
            functions += shell_size[s];
            sum += shell_mark[s];
        }
    counts[0][t] = found;
    counts[1][t] = functions;
    sums[t] = sum;
    for (int half = SETUP_THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (t < half) {
            counts[0][t] += counts[0][t + half];
            counts[1][t] += counts[1][t + half];
            sums[t] += sums[t + half];
        }
    }
    if (t == 0) {
        group_shells[group] = counts[0][0];
        group_functions[group] = counts[1][0];
        group_mark[group] = sums[0];
    }
}
#endif

#ifdef KERNEL_FILL
// A block for each list: the shells of group chosen[list] in order, where their functions begin, and the functions.
extern "C" __global__ void __launch_bounds__(SETUP_THREADS) ENTRY(PARAMETERS) {
    __shared__ int counts[2][SETUP_THREADS];
    const INDEX list = blockIdx.x, group = chosen[list];
    const int t = threadIdx.x;
    int found = 0, functions = 0;
    for (INDEX s = PART(t); s < PART(t + 1); ++s)
        if (matters(group, s, box_low, box_high, centre, radius, shell_centre, reach)) {
            ++found;
            functions += shell_size[s];
        }
    counts[0][t] = found;
    counts[1][t] = functions;
    __syncthreads();
    found = functions = 0;
    for (int before = 0; before < t; ++before) {
        found += counts[0][before];
        functions += counts[1][before];
    }
    for (INDEX s = PART(t); s < PART(t + 1); ++s)
        if (matters(group, s, box_low, box_high, centre, radius, shell_centre, reach)) {
            list_shell[list_first[list] + found] = (int)s;
            list_row[list_first[list] + found] = functions;
            for (int f = 0; f < shell_size[s]; ++f) ao[ao_first[list] + functions + f] = shell_ao[s] + f;
            ++found;
            functions += shell_size[s];
        }
}
#endif
