// The client that `prisma generate` would write for a schema without models. It is written by hand because
// the generator loads an engine from the network first; what runs is Prisma's own runtime and query compiler.
import { PrismaPg } from '@prisma/adapter-pg'
import { getPrismaClient } from '@prisma/client/runtime/client'

export interface PrismaTransaction {
  $queryRawUnsafe(text: string, ...params: readonly unknown[]): Promise<unknown>
  $transaction(body: (tx: PrismaTransaction) => Promise<void>, options?: { readonly timeout: number }): Promise<void>
}

export interface PrismaClient extends PrismaTransaction {
  $extends(extension: object): PrismaClient
  $disconnect(): Promise<void>
}

const COMPILER = '@prisma/client/runtime/query_compiler_fast_bg.postgresql'

export function createPrisma(url: string): PrismaClient {
  const config = {
    previewFeatures: [],
    clientVersion: '7.10.0',
    engineVersion: 'none',
    activeProvider: 'postgresql',
    inlineSchema: 'datasource db {\n  provider = "postgresql"\n}\n',
    runtimeDataModel: { models: {}, enums: {}, types: {} },
    parameterizationSchema: { strings: [], graph: 'AAAA' },
    compilerWasm: {
      importName: './query_compiler_fast_bg.js',
      getRuntime: () => import(`${COMPILER}.mjs`),
      async getQueryCompilerWasmModule() {
        const { wasm } = (await import(`${COMPILER}.wasm-base64.mjs`)) as { wasm: string }
        return compileWasm(Buffer.from(wasm, 'base64'))
      },
    },
  }
  // Generated code is not checked either; the interface above is what these tests use of it.
  const Client = getPrismaClient(config as never) as unknown as new (options: object) => PrismaClient
  return new Client({ adapter: new PrismaPg({ connectionString: url }) })
}

/** The types of Node 20 know WebAssembly by name only. */
function compileWasm(bytes: Uint8Array): unknown {
  const { Module } = Reflect.get(globalThis, 'WebAssembly') as { Module: new (bytes: Uint8Array) => unknown }
  return new Module(bytes)
}
