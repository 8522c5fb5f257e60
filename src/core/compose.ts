// Middleware is an onion of functions, each of which calls `next` at most once.

type Layer<Call, Reply> = (call: Call, next: (changed?: Call) => Promise<Reply>) => Promise<Reply>

/** The first layer is the outermost. `innermost` does the work itself. */
export function compose<Call, Reply>(
  layers: readonly Layer<Call, Reply>[],
  innermost: (call: Call) => Promise<Reply>,
): (call: Call) => Promise<Reply> {
  return layers.reduceRight<(call: Call) => Promise<Reply>>(
    (inner, layer) => async (call) => {
      let called = false
      return await layer(call, (changed) => {
        // A second pass would enqueue or run the same job twice.
        if (called) return Promise.reject(new TypeError('a middleware called next() twice'))
        called = true
        return inner(changed ?? call)
      })
    },
    innermost,
  )
}
