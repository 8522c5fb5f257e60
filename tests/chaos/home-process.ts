// A run that has just begun, for home.test.ts: it says where it lives, starts a server, and goes on until somebody ends it.
import { openHome } from '../../chaos/home.ts'
import { startRedis } from '../support/redis-server.ts'

const { directory } = await openHome()
process.send?.({ directory })
// One that ends with its process by itself would prove nothing.
const { pid } = await startRedis({ endsWithProcess: false })
process.send?.({ directory, pid })
setInterval(() => undefined, 1_000)
