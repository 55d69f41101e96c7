package structs

import (
	"strings"
	"testing"
)

func TestChecksumsOfArtifacts(t *testing.T) {
	for sum, want := range map[string]string{
		"md5:900150983cd24fb0d6963f7d28e17f72": "",
		"file:https://a.test/SHA256SUMS":       "",
		"${meta.sum}":                          "",
		"md5:90":                               "is not TYPE:HEX",
		"crc32:900150983cd24fb0d6963f7d28e17f": "is not TYPE:HEX",
	} {
		a := &TaskArtifact{GetterSource: Ptr("https://a.test/x"), GetterOptions: map[string]string{"checksum": sum}}
		a.setDefaults()
		var errs Errors
		a.validate(scope{errs: &errs})
		if err := errs.Err(); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", sum, err)
		}
	}
}
