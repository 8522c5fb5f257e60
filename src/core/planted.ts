// Switches that break one rule each, in the real code path, so that the simulator can prove that it
// would notice. None is ever on outside `npm run sim -- --planted`; with none on they cost a comparison.

export const PLANTED_BUGS = [
  'settle-without-lease',
  'expire-without-status',
  'claim-reuses-lease',
  'reap-without-watching',
  'fire-without-compare',
  'batch-counts-twice',
  'unique-not-checked',
  'group-freed-on-retry',
  'slot-kept-on-retry',
  'settlement-forgotten',
  'claim-not-recovered',
  'enqueue-retried-with-new-id',
  'return-counts-attempt',
  'start-without-trust',
  'promote-too-early',
  'cancel-overlooked',
  'rate-without-token',
  'orphan-released',
  'hand-over-not-fenced',
  'hand-over-not-missed',
  // Of the hybrid: guards of the scripts, of the ledger, and of the rules between them.
  'hybrid-hand-over-not-fenced',
  'hybrid-floor-ignored',
  'hybrid-pusher-ignored',
  'hybrid-claim-number-ignored',
  'hybrid-identity-ignored',
  'hybrid-birth-ignored',
  'hybrid-torn-ignored',
  'hybrid-revoke-ignored',
  'hybrid-barrier-ignored',
  'hybrid-claims-unmarked',
  'hybrid-adopt-without-marks',
  'hybrid-old-epoch-started',
  'hybrid-no-self-check',
  'hybrid-holdings-keep-number',
  'hybrid-audit-without-floor',
  'hybrid-reap-live',
  'hybrid-cancel-without-revoke',
  'hybrid-cancel-without-barrier',
  'hybrid-push-twice',
  'hybrid-unborn-left',
  'hybrid-read-heals',
] as const

export type PlantedBug = (typeof PLANTED_BUGS)[number]

let active: PlantedBug | undefined

export function plant(bug: PlantedBug | undefined): void {
  active = bug
}

export function isPlanted(bug: PlantedBug): boolean {
  return active === bug
}
