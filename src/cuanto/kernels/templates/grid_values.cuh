// A thread for each point of each task: values[component][task][function][point].
extern "C" __global__ void __launch_bounds__(THREADS) ENTRY(PARAMETERS) {
    const INDEX t = (INDEX)blockIdx.x * THREADS / points, p = ((INDEX)blockIdx.x * THREADS) % points + threadIdx.x;
    const INDEX g = task_point[t] + p, component = tasks * rows * points;
    const double X = position[g], Y = position[stride + g], Z = position[2 * stride + g];
    REAL* place = values + t * rows * points + p;
    for (INDEX f = task_functions[t]; f < rows; ++f)
        UNROLL for (int c = 0; c < VALUES; ++c) place[c * component + f * points] = 0;
    const INDEX first = task_list[t];
    for (int k = 0; k < task_shells[t]; ++k) {
        const INDEX s = list_shell[first + k];
        const int* record = shell + SHELL_FIELDS * s;
        const double* R = centre + 3 * s;
        const int width = functions_in(record[0]);
        REAL* at = place + (INDEX)list_row[first + k] * points;
        shell_values(record, primitive, X - R[0], Y - R[1], Z - R[2], [&](int q, int c, int m, VEC value) {
            at[c * component + (INDEX)(q * width + m) * points] = value;
        });
    }
}
