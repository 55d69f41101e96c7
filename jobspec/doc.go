// Package jobspec turns the text of a jobspec (HCL2, or JSON in the API's form) into a structs.Job. It is called by
// the command line and by the parse endpoint.
//
// The text is read in five steps: syntax; input variables (defaults, environment, files, arguments, validation);
// locals; references which only a node can resolve are turned into text ("${node.class}"); decoding by the hcl tags
// of the data model, with dynamic blocks expanded on the way. Every fault carries its position, and all faults are
// told at once. Parsing fills in little; defaults and validation are the business of structs.
//
// The language follows the public jobspec and HCL2 references.
package jobspec
