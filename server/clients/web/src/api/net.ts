// Stands in the browser for what the contract's schemas use of node:net (vite.config.ts). A unit
// test compares both.

const byte = '(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)';
const ipv4 = new RegExp(`^${byte}(?:\\.${byte}){3}$`);

export const isIPv4 = (text: string): boolean => ipv4.test(text);

/**
 * An IPv4 address in it has four plain decimal numbers; the browser's own parser knows the rest.
 */
export const isIPv6 = (text: string): boolean => {
  const bare = text.replace(/%[0-9a-zA-Z.:_-]+$/, '');
  if (!/^[0-9a-fA-F:.]+$/.test(bare)) return false;
  const tail = bare.slice(bare.lastIndexOf(':') + 1);
  return !(tail.includes('.') && !isIPv4(tail)) && URL.canParse(`http://[${bare}]/`);
};

/** The service alone compares addresses with networks. */
export class BlockList {}
