// What a route is: a method, a path, and a function from a request to a reply. Plain values, so that routes are tested
// without a socket.

export interface HttpRequest {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
}

export type HttpReply =
  | { readonly status: number; readonly json: unknown; readonly headers?: Readonly<Record<string, string>> }
  | { readonly status: number; readonly text: string; readonly type: string }

export interface Route {
  readonly method: 'GET'
  readonly path: string
  /** True: it tells so little that probes need no token for it. */
  readonly isOpen?: boolean
  readonly handle: (request: HttpRequest) => Promise<HttpReply>
}

export type Found = Route | { readonly refusal: HttpReply }

export function findRoute(routes: readonly Route[], { method, path }: HttpRequest): Found {
  const here = routes.filter((route) => route.path === path)
  if (here.length === 0) {
    const known = [...new Set(routes.map((route) => route.path))].join(', ')
    return { refusal: errorReply(404, 'NOT_FOUND', `there is nothing at this path: try ${known}`) }
  }
  // HEAD is GET without its body.
  const route = here.find((one) => one.method === (method === 'HEAD' ? 'GET' : method))
  if (route !== undefined) return route
  const methods = [...new Set(here.map((one) => one.method)), 'HEAD'].join(', ')
  const reply = errorReply(405, 'METHOD_NOT_ALLOWED', `use ${methods} here`)
  return { refusal: { ...reply, headers: { allow: methods } } }
}

/** The same form as the errors of the command line. */
export function errorReply(status: number, code: string, message: string) {
  return { status, json: { error: { code, message } } }
}
