// The scenarios of scenarios.ts for the profile 12c-19c, on our library and on SoftHSM2.
import { describeRelease } from './release.ts';

describeRelease('12c-19c');
