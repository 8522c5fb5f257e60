// Which addresses a webhook may be sent to. A URL in a configuration, or a name that somebody else controls, must not reach
// the network this process runs in: loopback, private and link-local addresses, cloud metadata. A name is resolved once,
// every answer is looked at, and the connection goes to the address that was looked at: a second answer cannot differ.
import { lookup as dnsLookup } from 'node:dns/promises'
import { BlockList, isIP } from 'node:net'
import { notDelivered, refused } from './sink.ts'

export interface Address {
  readonly address: string
  readonly family: 4 | 6
}

export type Resolve = (hostname: string) => Promise<readonly Address[]>

const ADDRESSES_MAX = 32

/** Not of the public IPv4: RFC 6890 and its successors. */
const INNER4: readonly (readonly [string, number])[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
]
/** Inside 2000::/3, which is all that is public: protocol assignments with Teredo, documentation, 6to4. */
const INNER6: readonly (readonly [string, number])[] = [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
]

const inner4 = new BlockList()
for (const [net, prefix] of INNER4) inner4.addSubnet(net, prefix, 'ipv4')
const inner6 = new BlockList()
for (const [net, prefix] of INNER6) inner6.addSubnet(net, prefix, 'ipv6')
const public6 = new BlockList()
public6.addSubnet('2000::', 3, 'ipv6')

export function isPublicAddress(address: string): boolean {
  // A zone (`fe80::1%eth0`) exists only for addresses of a link.
  switch (isIP(address)) {
    case 4:
      return !inner4.check(address, 'ipv4')
    case 6:
      // IPv4-mapped and NAT64 addresses lie outside 2000::/3.
      return public6.check(address, 'ipv6') && !inner6.check(address, 'ipv6')
    default:
      return false
  }
}

/** The addresses that may be connected to. All answers must be public: of a mixed answer the caller could get the other one. */
export async function resolveTarget(
  hostname: string,
  allowPrivate: boolean,
  resolve: Resolve = resolveAll,
): Promise<readonly Address[]> {
  const bare = hostname.replace(/^\[|\]$/g, '')
  const family = isIP(bare)
  const found = family === 0 ? await resolved(bare, resolve) : [{ address: bare, family: family as 4 | 6 }]
  if (found.length === 0) throw notDelivered(`${bare} has no address`)
  const inner = allowPrivate ? undefined : found.find(({ address }) => !isPublicAddress(address))
  if (inner !== undefined) {
    throw refused(
      `${bare} is ${inner.address === bare ? '' : `${inner.address}, `}not a public address: set allowPrivate for this sink if it is meant to be`,
    )
  }
  return found
}

async function resolved(hostname: string, resolve: Resolve): Promise<readonly Address[]> {
  try {
    return (await resolve(hostname)).slice(0, ADDRESSES_MAX)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'no answer'
    throw notDelivered(`${hostname} cannot be resolved: ${code}`, { cause: error })
  }
}

async function resolveAll(hostname: string): Promise<readonly Address[]> {
  const found = await dnsLookup(hostname, { all: true, verbatim: true })
  return found.map(({ address, family }) => ({ address, family: family === 6 ? 6 : 4 }))
}
