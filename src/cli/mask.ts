// Passwords in connection URLs are never shown. Masking too much is a nuisance, masking too little a leak: the
// password is taken to reach up to the last @ before the next space.

const USER_INFO = /\b([a-z][a-z0-9+.-]*:\/\/[^\s:/?#@]*):[^\s]*@/gi
const PARAMETER = /([?&](?:password|pass|pwd|sslpassword|token|secret)=)[^&\s#]*/gi

export function maskUrls(text: string): string {
  return text.replaceAll(USER_INFO, '$1:***@').replaceAll(PARAMETER, '$1***')
}
