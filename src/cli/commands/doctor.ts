// `millrace doctor`: runs all checks and says what to do about what they find.
import type { Command } from 'commander'
import { runs, teach } from '../command.ts'
import type { Cli } from '../command.ts'
import { describeError } from '../cli-error.ts'
import { clientChecks, examine, worstOf } from '../doctor.ts'
import type { Examined } from '../doctor.ts'
import { EXIT, exitOf } from '../exit-codes.ts'
import { maskUrls } from '../mask.ts'
import type { Output } from '../output.ts'
import { outputOf, withMill } from '../session.ts'
import type { FindingLevel } from '../../store/diagnosis.ts'
import { lines, printable } from '../text.ts'

const STYLES = { ok: 'green', warn: 'yellow', fail: 'red' } as const satisfies Record<FindingLevel, string>

export function addDoctor(program: Command, cli: Cli): void {
  const command = program
    .command('doctor')
    .summary('examine the system')
    .description(
      'Examines the store, the clocks, the workers, the queues and the schedules, and says what to do about what it finds. Ends with 4 when a check fails, and with --strict also when one warns.',
    )
    .option('--strict', 'a warning counts as a failure')
  teach(command, {
    examples: [
      ['doctor', 'all checks'],
      ['doctor --strict --json', 'in a deployment pipeline'],
    ],
    exits: ['unmet'],
  })
  runs<{ readonly strict?: boolean }>(cli, command, async (flags) => {
    const { clock } = cli.parts
    const show = (examined: readonly Examined[], out: Output): number => {
      const verdict = worstOf(examined)
      out.show({ verdict, checks: examined }, () => examined.map((one) => findingText(one, out)).join(''))
      return verdict === 'fail' || (verdict === 'warn' && flags.strict) ? EXIT.unmet : EXIT.done
    }
    try {
      return await withMill(cli.parts, flags, async (session) => {
        const own = await session.reads.checks()
        const general = clientChecks(session, clock).filter(({ name }) => !own.some((check) => check.name === name))
        return show(await examine([...general, ...own], clock), session.out)
      })
    } catch (error) {
      // A store that cannot be reached is what a doctor is called for: a finding, not an accident.
      const { code, message } = describeError(error)
      if (exitOf(code) !== EXIT.unavailable) throw error
      const fix = 'check that the server runs, and that host, port, user and password are right'
      show([{ name: 'store', level: 'fail', message: maskUrls(message), fix }], outputOf(cli.parts, flags))
      return EXIT.unavailable
    }
  })
}

function findingText({ name, level, message, fix }: Examined, out: Output): string {
  const head = `${out.paint(level.padEnd(4), STYLES[level])}  ${name}: ${printable(message)}\n`
  return fix === undefined ? head : `${head}      ${lines(fix)}`
}
