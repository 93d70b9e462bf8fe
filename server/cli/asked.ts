// Which service this command has asked: what fails in the program after that may be because of the
// answer, of an older or newer service or of something in between.

let asked: string | undefined;
export const rememberAsked = (url: string | undefined): void => {
  asked = url;
};
export const askedService = (): string | undefined => asked;
